import type { ProgramInfo, SleepState } from "../../client/api";
import { translate } from "../../language/translation";
import { countOf, formatBytes, secondsOf } from "../../ui/format";

type Tone = "leaf" | "amber" | "alarm";

const TONES: Record<ProgramInfo["state"], Tone> = {
  ready: "leaf",
  idle: "leaf",
  starting: "amber",
  waiting: "amber",
  stopping: "amber",
  unhealthy: "alarm",
  "crash-looping": "alarm",
  stopped: "alarm",
};

export const toneOf = (program: ProgramInfo): Tone => TONES[program.state];

/** A duration in its largest unit. */
export function formatDuration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min`;
  if (whole < 86_400) return `${Math.floor(whole / 3600)} h`;
  const days = Math.floor(whole / 86_400);
  return countOf(days, "day");
}

/** "pid 12 · for 3 h · 54 MB · restarted twice", as far as it is known. */
export function programFacts(program: ProgramInfo, now: number): string {
  const times = ["", "restarted once", "restarted twice"][program.restarts] ?? `restarted ${program.restarts} times`;
  return [
    program.pid === null ? "" : `pid ${program.pid}`,
    translate("for {0}", formatDuration(now - secondsOf(program.since))),
    program.memory === null ? "" : formatBytes(program.memory),
    times,
    program.next_start_in === null ? "" : `starts again in ${formatDuration(program.next_start_in)}`,
  ]
    .filter((fact) => fact !== "")
    .join(" · ");
}

/** Whether the computer sleeps, and what that saves; null for one that never sleeps. */
export function sleepFacts(sleep: SleepState | null, now: number): string | null {
  if (sleep === null) return null;
  if (sleep.trouble !== null) return sleep.trouble;
  if (sleep.since !== null)
    return [
      `Asleep for ${formatDuration(now - secondsOf(sleep.since))}`,
      sleep.given_back ? `${formatBytes(sleep.given_back)} of memory given back` : "",
      "wakes when it is used",
    ]
      .filter((fact) => fact !== "")
      .join(" · ");
  const slept = sleep.times === 0 ? "" : ` · slept ${formatDuration(sleep.seconds)} so far`;
  return `Sleeps after ${formatDuration(sleep.after)} without use${slept}`;
}

/** The last error of a program while it matters. A program that is just starting does not answer yet. */
export function programError(program: ProgramInfo): string | null {
  if (program.last_error === null || program.state === "ready" || program.state === "idle")
    return program.name === "keeper" ? program.last_error : null;
  return program.state === "starting" && program.restarts === 0 ? null : program.last_error;
}

/** What a restart interrupts, as the label of the confirmation; null when it interrupts nothing. */
export function restartWarning(name: string): string | null {
  if (name === "computer") return "Ends all programs inside. Restart?";
  if (name === "gateway") return "Interrupts working agents. Restart?";
  if (name === "ssh") return "Ends open connections. Restart?";
  return null;
}

/** `service-web` is the service `web` of freehold.toml. */
export function programTitle(name: string): string {
  return name.startsWith("service-") ? name.slice("service-".length) : name;
}

export function programDescription(name: string): string {
  if (name.startsWith("service-")) return "a service in the computer";
  const known: Record<string, string> = {
    keeper: "runs the other programs, history and undo",
    gateway: "sign-in, API, agents, network and this page",
    computer: "the sealed machine in which agents work",
    mounts: "folders of S3, WebDAV and rclone remotes",
    ssh: "SSH access",
  };
  return known[name] ?? "";
}
