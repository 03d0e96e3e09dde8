import type { Run } from "../../client/api";
import { translate } from "../../language/translation";
import { visibleText } from "../../ui/visibleText";
import { wordOf } from "../../ui/words";

const FINISHED: ReadonlySet<Run["state"]> = new Set(["done", "failed", "ended"]);

export function isFinished(run: Run): boolean {
  return FINISHED.has(run.state);
}

/** A run with those that its own agent has begun. */
export interface RunNode {
  run: Run;
  below: RunNode[];
}

/** The runs as trees, the newest first. A run whose parent is not a run here is at the top. */
export function treeOf(runs: readonly Run[]): RunNode[] {
  const nodes = new Map<string, RunNode>(runs.map((run) => [run.session, { run, below: [] }]));
  const top: RunNode[] = [];
  for (const run of runs) {
    const node = nodes.get(run.session);
    if (node === undefined) continue;
    const above = run.parent === null ? undefined : nodes.get(run.parent);
    (above === undefined ? top : above.below).push(node);
  }
  return top;
}

export function stateText(run: Run): string {
  if (run.state === "needs_you") return "needs your answer";
  return wordOf(run.state);
}

/** The color of the state. */
export function toneOf(run: Run): "leaf" | "alarm" | "amber" | undefined {
  if (run.state === "needs_you") return "amber";
  if (run.state === "failed") return "alarm";
  return run.state === "ended" ? undefined : "leaf";
}

/** Of what a run has a copy: a folder as it was when the run began, or after an entry of history. */
export function copyText(folder: string, entry: number | null): string {
  const path = folder.replace(/^[./]+|\/+$/g, "");
  if (entry !== null)
    return path === "" ? `copy of the workspace, entry ${entry}` : `copy of ${visibleText(path)}, entry ${entry}`;
  return path === "" ? "copy of the workspace" : `copy of ${visibleText(path)}`;
}

/** What it has cost, of how much; empty when nothing is known. */
export function costText(run: Run, format: (value: number) => string): string {
  if (run.cost === null) return run.budget === null ? "" : translate("budget {0}", format(run.budget));
  return run.budget === null
    ? translate("cost {0}", format(run.cost))
    : `cost ${format(run.cost)} of ${format(run.budget)}`;
}

/** What it has changed, in words; empty when it has not finished or changed nothing. */
export function changesText(run: Run): string {
  if (!isFinished(run) || run.outcome === "none") return "";
  const count = run.added + run.changed + run.removed;
  const files = count === 1 ? translate("1 file changed") : `${count} files changed`;
  return run.outcome === "pending" ? files : `${files}, ${wordOf(run.outcome)}`;
}

/** What a run may do besides working in its computer. */
export const PERMISSIONS: readonly { name: Run["permissions"][number]; words: string }[] = [
  { name: "ask", words: "ask you" },
  { name: "network", words: "use the network by your rules" },
  { name: "pods", words: "use personal documents granted to its agent" },
  { name: "memory", words: "remember and recall" },
  { name: "beads", words: "read and change work items" },
  { name: "events", words: "publish events" },
  { name: "history", words: "read history and undo" },
  { name: "runs", words: "begin runs" },
];

/** What a run may not do; empty when it may do everything. */
export function limitsText(run: Run): string {
  const missing = PERMISSIONS.filter(({ name }) => !run.permissions.includes(name));
  return missing.length === 0 ? "" : `May not: ${missing.map(({ words }) => words).join(", ")}`;
}

/** Who began a run; empty for the owner. */
export function beganText(run: Run): string {
  if (run.began_by.startsWith("token:")) return `begun by the program ${run.began_by.slice("token:".length)}`;
  return run.began_by.startsWith("session:") ? "begun by an agent" : "";
}

export type RunAction = "stop" | "changes" | "drop";

/** What can be done with a run, in the order of the buttons. */
export function actionsOf(run: Run): RunAction[] {
  if (!isFinished(run)) return ["stop"];
  return run.outcome === "pending" && run.added + run.changed + run.removed > 0 ? ["changes", "drop"] : [];
}

/** Whether an event of the timeline concerns the runs. */
export function concernsRuns(event: unknown): boolean {
  const kind = (event as { kind?: unknown } | null)?.kind;
  return typeof kind === "string" && (kind.startsWith("orchestrator.") || kind.startsWith("slot."));
}
