import type { Slot } from "../../client/api";

export type SlotName = "beads" | "orchestrator" | "memory" | "pods" | "events";

interface SlotWords {
  name: SlotName;
  title: string;
  about: string;
  path: string;
  /** What is said of it while it is off. */
  off: string;
}

/** The slots in the order of their pages. */
export const SLOTS: readonly SlotWords[] = [
  {
    name: "beads",
    title: "Work",
    about: "Items for you and your agents.",
    path: "/beads",
    off: "Work items are off.",
  },
  {
    name: "orchestrator",
    title: "Runs",
    about: "Agents that work in parallel, each in a computer and a copy of its own.",
    path: "/runs",
    off: "Runs are off.",
  },
  {
    name: "memory",
    title: "Memory",
    about: "What agents remember from earlier conversations.",
    path: "/memory",
    off: "Memory is off.",
  },
  {
    name: "pods",
    title: "Data",
    about: "Your documents. An agent reaches only what you grant.",
    path: "/pods",
    off: "Personal data is off.",
  },
  {
    name: "events",
    title: "Events",
    about: "What other programs are told.",
    path: "/events",
    off: "Events are off.",
  },
];

const KEEPERS: Record<string, string> = {
  postgres: "Kept in your PostgreSQL database",
  solid: "Kept on your Solid server",
  webhook: "Kept in this home and sent to a webhook",
  nats: "Kept in this home and sent to NATS",
  freehold: "Run on another Freehold",
  neighbour: "Run by a neighbour",
};

/** Where a slot is kept, in words. */
export function placeText({ name, mode, implementation }: Slot): string {
  if (mode === "off") return "Off";
  if (mode === "local") return name === "orchestrator" ? "Run on this machine" : "Kept in this home";
  return KEEPERS[implementation] ?? "Kept by an external service";
}

/** What the filter does with secrets and personal data. */
export const PRIVACY: Record<Slot["privacy"], string> = {
  strict: "Private data is refused",
  soft: "Private data is replaced by pseudonyms",
  off: "No privacy filter",
};

/** Where a slot is kept and what its filter does, in one line. */
export function slotFacts(slot: Slot): string {
  const facts = [placeText(slot), PRIVACY[slot.privacy]];
  if (slot.required) facts.push("Required");
  return facts.join(" · ");
}

const SLOT_WORDS = { ok: "works", unavailable: "cannot be reached", starting: "connects", off: "off" };

/** The state as a word and a color. */
export function stateOf({ state }: Slot): { text: string; tone: "leaf" | "alarm" | "amber" | undefined } {
  if (state === "ok") return { text: SLOT_WORDS.ok, tone: "leaf" };
  if (state === "unavailable") return { text: SLOT_WORDS.unavailable, tone: "alarm" };
  return state === "starting"
    ? { text: SLOT_WORDS.starting, tone: "amber" }
    : { text: SLOT_WORDS.off, tone: undefined };
}
