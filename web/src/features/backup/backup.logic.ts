import type { BackupState } from "../../client/api";
import { countOf, formatBytes, formatDateTime, secondsOf } from "../../ui/format";

export type Tone = "leaf" | "amber" | "alarm";

const WORK: Record<string, string> = {
  now: "A backup is being made.",
  verify: "Backups are being read back.",
  rehearse: "A restore is being tried.",
  prune: "Old backups are being removed.",
};

/** The one sentence at the top of the page, and its colour. */
export function headlineOf(state: BackupState): { text: string; tone: Tone } {
  if (state.running !== null) return { text: WORK[state.running] ?? "Work is being done.", tone: "amber" };
  if (state.state === "failing") return { text: "Backups fail.", tone: "alarm" };
  if (state.recovery_key === null) return { text: "Backups are not set up yet.", tone: "amber" };
  if (state.last === null) return { text: "There is no backup yet.", tone: "amber" };
  if (state.state === "warning") return { text: "The last try failed.", tone: "amber" };
  return state.pending === null
    ? { text: "Everything is backed up.", tone: "leaf" }
    : { text: "Changes wait for the next backup.", tone: "leaf" };
}

/** The facts of the page, in the order in which an owner asks for them. */
export function factsOf(state: BackupState): [name: string, value: string][] {
  const facts: [string, string][] = [["Place", state.to]];
  if (state.last !== null) {
    facts.push(["Last backup", `${moment(state.last.at)}, number ${state.last.number}`]);
    facts.push(["Files", `${countOf(state.last.files, "file")}, ${formatBytes(state.last.total)}`]);
  }
  if (state.stored !== null) facts.push(["Size of all backups", formatBytes(state.stored)]);
  facts.push(["Verified", checkText(state.verification, "packs")]);
  facts.push(["Restore tried", checkText(state.rehearsal, "number")]);
  facts.push(["Recovery key", keyText(state.recovery_key)]);
  facts.push([
    "Kept",
    `${countOf(state.keep.hourly ?? 0, "hour")}, ${countOf(state.keep.daily ?? 0, "day")}, ${countOf(state.keep.weekly ?? 0, "week")}`,
  ]);
  return facts;
}

/** All problems that were found when backups were read back. */
export function problemsOf(state: BackupState): string[] {
  return [...(state.verification?.problems ?? []), ...(state.rehearsal?.problems ?? [])];
}

function checkText(check: BackupState["verification"], by: "packs" | "number"): string {
  if (check === null) return "not yet";
  const what =
    by === "packs" ? `${check.packs ?? 0} of ${check.all_packs ?? 0} packs read` : `backup ${check.number ?? ""}`;
  const verdict = check.problems.length === 0 ? "no problems" : countOf(check.problems.length, "problem");
  return `${moment(check.at)}, ${what}, ${verdict}`;
}

function keyText(key: BackupState["recovery_key"]): string {
  if (key === null) return "none";
  return key.tried === null ? `made ${moment(key.made)}, never tried` : `tried ${moment(key.tried)}`;
}

function moment(text: string): string {
  return formatDateTime(secondsOf(text));
}
