import { expect, test } from "vitest";
import type { HistoryEntry } from "../../client/api";
import { whoWords } from "./history.logic";
import { behind, factsOf, groupOf, kindsOf, readGroups, sentence, together, turnStarts, withEvents, withNewest, type Recorded } from "./timeline.logic";

const event = (seq: number, kind: string, data: Record<string, unknown> = {}): Recorded => ({ seq, at: new Date(seq * 1000).toISOString(), kind, who: "owner", data });
const entry = (id: number, at: number, more: Partial<HistoryEntry> = {}): HistoryEntry => ({
  id, at, kind: "quiet", who: {}, why: "", added: 1, changed: 0, removed: 0, lines_added: null, lines_removed: null, good: false, equals: id, notes: [], ...more,
});
const day = () => "Today";
const keys = (rows: ReturnType<typeof together>) => rows.map((row) => row.key);

test("every kind belongs somewhere, and what nobody names to the house", () => {
  expect(["history.undone", "approval.asked", "egress.question_answered", "egress.denied", "models.stopped", "turn.started", "identity.signed_in", "boot.started", "x.y"].map(groupOf)).toEqual([
    "files", "decisions", "decisions", "network", "decisions", "work", "access", "house", "house",
  ]);
  expect(kindsOf(["files", "house"])).toBeNull();
  expect(kindsOf(["access"])).toEqual(["identity.*", "ssh.*", "turn.ended"]);
  expect(readGroups(new URLSearchParams("show=network,nonsense"))).toEqual(["network"]);
  expect(readGroups(new URLSearchParams())).toEqual(["files", "decisions"]);
});

test("entries and events are one list, the newest first", () => {
  const rows = together({ items: [entry(2, 30), entry(1, 10)], more: false }, { items: [event(20, "egress.denied")], more: false }, ["files", "network"], "", day);
  expect(keys(rows)).toEqual(["day Today", "entry 2", "event 20", "entry 1"]);
});

test("nothing is shown beyond where either list is known to be whole", () => {
  const entries = { items: [entry(9, 90), entry(8, 80)], more: true };
  const events = { items: [event(95, "egress.denied"), event(50, "egress.denied")], more: true };
  expect(keys(together(entries, events, ["files", "network"], "", day))).toEqual(["day Today", "event 95", "entry 9", "entry 8"]);
  expect(behind(entries, events)).toBe("entries");
  expect(behind({ ...entries, more: false }, events)).toBe("events");
  expect(behind({ ...entries, more: false }, null)).toBeNull();
});

test("what an undo did is told once, and so is a question with its answer", () => {
  const events = { items: [event(6, "approval.answered", { approval: "a", answer: "once" }), event(5, "history.undone", { entry: 2 }), event(4, "approval.asked", { approval: "a", title: "rm x" }), event(3, "approval.asked", { approval: "b", title: "ls" })], more: false };
  const rows = together({ items: [entry(2, 5, { kind: "undo" })], more: false }, events, ["files", "decisions"], "", day);
  expect(keys(rows)).toEqual(["day Today", "event 6", "entry 2", "event 3"]);
  expect(rows[1]).toMatchObject({ title: "Allowed what the agent asked, once", facts: "rm x" });
});

test("words find entries and events alike", () => {
  const entries = { items: [entry(2, 20, { who: { prompt: "make it dark" } }), entry(1, 10)], more: false };
  const events = { items: [event(15, "egress.denied", { host: "dark.example" })], more: false };
  expect(keys(together(entries, events, ["files", "network"], "DARK", day))).toEqual(["day Today", "entry 2", "event 15"]);
  expect(keys(together(entries, events, ["files", "network"], "#1", day))).toEqual(["day Today", "entry 1"]);
});

test("a page over what is held, each event once", () => {
  expect(withNewest([entry(4, 0), entry(3, 0), entry(2, 0)], [entry(5, 0), entry(3, 0, { good: true })]).map((one) => [one.id, one.good])).toEqual([[5, false], [3, true], [2, false]]);
  expect(withEvents([event(2, "a.b")], [event(3, "a.b"), event(2, "a.b")]).map((one) => one.seq)).toEqual([3, 2]);
});

test("a turn of several entries is known by where it began", () => {
  expect([...turnStarts([event(1, "turn.ended", { changes: { before: 3, entry: 6, added: 1 } }), event(2, "turn.ended", { changes: null })])]).toEqual([[6, 3]]);
});

test("kinds and data become words", () => {
  expect(sentence(event(1, "identity.token_created", { name: "x" }))).toEqual({ title: "Token created", facts: "name x" });
  expect(sentence(event(1, "boot.started")).title).toBe("Boot started");
  expect(factsOf(event(1, "a.b", { a: null, b: "", c_d: { e: 1 }, f: "x".repeat(200) }))).toMatch(/^c d \{"e":1\} · f x{120}…$/);
});

test("the owner is called the same wherever they answer", () => {
  expect(["owner", "token:chat-d64e513b", "token:laptop", "token:my-key", "system"].map(whoWords)).toEqual(["you", "you, by token chat", "you, by token laptop", "you, by token my-key", "system"]);
});

test("one answer about the network is one row, and a rule made by itself is told in words", () => {
  const items = [
    event(4, "egress.rule_added", { verdict: "deny", rule: "b.example", scope: "always", reason: "the owner said so" }),
    event(3, "egress.rule_added", { verdict: "allow", rule: "a.example:443", scope: "once", reason: "the owner answered question 7 with once" }),
    event(2, "egress.question_answered", { id: 7, target: "a.example:443", answer: "once", attempts: 1 }),
    event(1, "egress.question_asked", { id: 7, target: "a.example:443" }),
  ];
  const rows = together(null, { items, more: false }, ["decisions"], "", day);
  expect(rows.map((row) => (row.kind === "event" ? row.title : row.key))).toEqual(["day Today", "Never lets anything reach b.example", "Lets it reach a.example:443, once"]);
});

test("a question that a rule answered is not told as its contrary", () => {
  expect(sentence(event(1, "egress.question_answered", { id: 1, target: "c.example:443", answer: "by the rule 'deny c.example'" })).title).toBe("Does not let it reach c.example:443, by the rule 'deny c.example'");
  expect(sentence(event(1, "egress.rule_removed", { verdict: "allow", rule: "a.example:443", scope: "once", reason: "it was used" })).title).toBe("Reached a.example:443, as was let once");
});
