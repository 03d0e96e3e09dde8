export interface Recorded {
  seq: number;
  at: string;
  kind: string;
  who: string;
  data: Record<string, unknown>;
}

export const FILTERS: readonly { name: string; title: string; rooms: readonly string[] }[] = [
  { name: "all", title: "All", rooms: [] },
  { name: "files", title: "Files", rooms: ["history"] },
  { name: "network", title: "Network", rooms: ["egress", "model", "budget"] },
  { name: "work", title: "Work", rooms: ["session", "turn", "approval", "agent", "agents", "terminal", "ssh"] },
  { name: "door", title: "Sign-ins", rooms: ["identity"] },
  { name: "house", title: "House", rooms: ["boot", "program", "seal", "computer", "health", "keeper", "gateway"] },
];

export function isIn(event: Recorded, filter: string): boolean {
  const rooms = FILTERS.find((one) => one.name === filter)?.rooms ?? [];
  return rooms.length === 0 || rooms.includes(event.kind.split(".")[0] ?? "");
}

/** `identity.token_created` → `Token created`. */
export function wordsOf(event: Recorded): string {
  const words = (event.kind.split(".").slice(1).join(" ") || event.kind).replaceAll("_", " ");
  const room = event.kind.split(".")[0] ?? "";
  const whole = words.includes(room) || ["identity", "egress"].includes(room) ? words : `${room} ${words}`;
  return whole.charAt(0).toUpperCase() + whole.slice(1);
}

const LONGEST = 120;

/** The facts of an event on one line. */
export function factsOf(event: Recorded): string {
  return Object.entries(event.data)
    .filter(([, value]) => value !== null && value !== "")
    .map(([name, value]) => {
      const text = typeof value === "object" ? JSON.stringify(value) : String(value);
      return `${name.replaceAll("_", " ")} ${text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text}`;
    })
    .join(" · ");
}

/** Old and new together, the newest first, each once, at most `most`. */
export function together(held: readonly Recorded[], more: readonly Recorded[], most = 1_000): Recorded[] {
  const all = new Map([...held, ...more].map((event) => [event.seq, event]));
  return [...all.values()].sort((a, b) => b.seq - a.seq).slice(0, most);
}
