import type { ProgramRow } from "../../client/api";
import { bytes } from "../../ui/moments";

type Tone = "leaf" | "amber" | "alarm";

const TONES: Record<ProgramRow["state"], Tone> = {
  ready: "leaf",
  starting: "amber",
  waiting: "amber",
  stopping: "amber",
  unhealthy: "alarm",
  "crash-looping": "alarm",
  stopped: "alarm",
};

export const toneOf = (program: ProgramRow): Tone => TONES[program.state];

/** How long, as a person says it. */
export function span(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min`;
  if (whole < 86_400) return `${Math.floor(whole / 3600)} h`;
  const days = Math.floor(whole / 86_400);
  return days === 1 ? "a day" : `${days} days`;
}

/** "pid 12 · for 3 h · 54 MB · restarted twice", of what is known. */
export function factsOf(program: ProgramRow, now: number): string {
  const times = ["", "restarted once", "restarted twice"][program.restarts] ?? `restarted ${program.restarts} times`;
  return [
    program.pid === null ? "" : `pid ${program.pid}`,
    `for ${span(now - program.since)}`,
    program.memory === null ? "" : bytes(program.memory),
    times,
    program.next_start_in === null ? "" : `tried again in ${span(program.next_start_in)}`,
  ]
    .filter((fact) => fact !== "")
    .join(" · ");
}

/** What went wrong, where it still matters: a program that only just starts does not answer yet. */
export function troubleWith(program: ProgramRow): string | null {
  if (program.last_error === null || program.state === "ready") return program.name === "keeper" ? program.last_error : null;
  return program.state === "starting" && program.restarts === 0 ? null : program.last_error;
}

/** What a restart costs, asked before it is done; null where it costs nothing. */
export function costOfRestart(name: string): string | null {
  if (name === "computer") return "Ends all that runs inside: restart";
  if (name === "gateway") return "Agents at work are interrupted: restart";
  if (name === "ssh") return "Ends open connections: restart";
  return null;
}

/** `service-web` is the service that freehold.toml calls web. */
export function titleOf(name: string): string {
  return name.startsWith("service-") ? name.slice("service-".length) : name;
}

export function meaningOf(name: string): string {
  if (name.startsWith("service-")) return "a service in the computer";
  const known: Record<string, string> = {
    keeper: "keeps the others, history and undo",
    gateway: "sign-in, API, agents, egress and this page",
    computer: "the sealed machine the agents live in",
    ssh: "the side door",
  };
  return known[name] ?? "";
}
