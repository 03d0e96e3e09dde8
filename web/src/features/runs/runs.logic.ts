import type { Run } from "../../client/api";

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
  return run.state;
}

/** The color of the state. */
export function toneOf(run: Run): "leaf" | "alarm" | "amber" | undefined {
  if (run.state === "needs_you") return "amber";
  if (run.state === "failed") return "alarm";
  return run.state === "ended" ? undefined : "leaf";
}

/** What it has cost, of how much; empty when nothing is known. */
export function costText(run: Run, format: (value: number) => string): string {
  if (run.cost === null) return run.budget === null ? "" : `budget ${format(run.budget)}`;
  return run.budget === null ? `cost ${format(run.cost)}` : `cost ${format(run.cost)} of ${format(run.budget)}`;
}

/** What it has changed, in words; empty when it has not finished or changed nothing. */
export function changesText(run: Run): string {
  if (!isFinished(run) || run.outcome === "none") return "";
  const count = run.added + run.changed + run.removed;
  const files = count === 1 ? "1 file changed" : `${count} files changed`;
  return run.outcome === "pending" ? files : `${files}, ${run.outcome}`;
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
