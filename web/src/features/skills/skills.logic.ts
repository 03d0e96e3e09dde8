import type { LookedSkill, Skill, SkillFinding, SkillSource } from "../../client/api";
import { countOf } from "../../ui/format";

/** Where a skill came from, in words. */
export function sourceText({ kind, place, part, commit }: SkillSource): string {
  if (kind === "shipped") return "comes with Freehold";
  if (kind === "proposal") return "proposed by an agent";
  const where = part === "" ? place : `${place}, ${part}`;
  return commit === null ? `from ${where}` : `from ${where}, commit ${commit.slice(0, 12)}`;
}

/** Who has loaded it, and how often. */
export function useText({ use }: Skill): string {
  if (use.count === 0) return "never loaded";
  const agents = Object.entries(use.agents)
    .sort(([, one], [, other]) => other - one)
    .map(([name, count]) => `${name} ${count}×`);
  return `loaded in ${countOf(use.count, "turn")}: ${agents.join(", ")}`;
}

export function findingText({ path, line, words }: SkillFinding): string {
  return `${path}${line === null ? "" : `, line ${line}`}: ${words}`;
}

/** Whether it may be added, and what the button for it says. */
export function offerOf({ content, in_use }: LookedSkill): { label: string; possible: boolean } {
  if (content.findings.some((finding) => finding.level === "refused")) return { label: "Refused", possible: false };
  if (in_use === content.digest) return { label: "In use", possible: false };
  return { label: in_use === null ? "Add" : "Use this version", possible: true };
}

/** Timeline events after which the list is fetched again. */
export function concernsSkills(event: unknown): boolean {
  const kind = (event as { kind?: unknown } | null)?.kind;
  return typeof kind === "string" && kind.startsWith("skill.");
}
