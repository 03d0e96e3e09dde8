import { expect, test } from "vitest";
import type { HistoryEntry } from "../../client/api";
import { describeEvent, type RecordedEvent } from "./eventText.logic";
import { actorText } from "./history.logic";
import {
  groupOf,
  kindsOf,
  mergeRows,
  nextToLoad,
  readGroups,
  turnStarts,
  withEvents,
  withNewest,
} from "./timeline.logic";

const event = (seq: number, kind: string, data: Record<string, unknown> = {}): RecordedEvent => ({
  seq,
  at: new Date(seq * 1000).toISOString(),
  kind,
  who: "owner",
  data,
});
const entry = (id: number, at: number, more: Partial<HistoryEntry> = {}): HistoryEntry => ({
  id,
  at: new Date(at * 1000).toISOString(),
  kind: "quiet",
  who: {},
  why: "",
  added: 1,
  changed: 0,
  removed: 0,
  lines_added: null,
  lines_removed: null,
  good: false,
  equals: id,
  notes: [],
  ...more,
});
const day = () => "Today";
const keys = (rows: ReturnType<typeof mergeRows>) => rows.map((row) => row.key);

test("every kind belongs to a group, and unknown ones to system", () => {
  expect(
    [
      "history.undone",
      "approval.asked",
      "egress.question_answered",
      "egress.denied",
      "models.stopped",
      "turn.started",
      "identity.signed_in",
      "boot.started",
      "x.y",
    ].map(groupOf),
  ).toEqual(["files", "decisions", "decisions", "network", "decisions", "work", "access", "system", "system"]);
  expect(kindsOf(["files", "system"])).toBeNull();
  expect(kindsOf(["access"])).toEqual(["identity.*", "ssh.*", "turn.ended"]);
  expect(readGroups(new URLSearchParams("show=network,nonsense"))).toEqual(["network"]);
  expect(readGroups(new URLSearchParams())).toEqual(["files", "decisions"]);
});

test("entries and events are one list, newest first", () => {
  const rows = mergeRows(
    { items: [entry(2, 30), entry(1, 10)], more: false },
    { items: [event(20, "egress.denied")], more: false },
    ["files", "network"],
    "",
    day,
  );
  expect(keys(rows)).toEqual(["day Today", "entry 2", "event 20", "entry 1"]);
});

test("nothing is shown beyond the point to which both lists are loaded", () => {
  const entries = { items: [entry(9, 90), entry(8, 80)], more: true };
  const events = { items: [event(95, "egress.denied"), event(50, "egress.denied")], more: true };
  expect(keys(mergeRows(entries, events, ["files", "network"], "", day))).toEqual([
    "day Today",
    "event 95",
    "entry 9",
    "entry 8",
  ]);
  expect(nextToLoad(entries, events)).toBe("entries");
  expect(nextToLoad({ ...entries, more: false }, events)).toBe("events");
  expect(nextToLoad({ ...entries, more: false }, null)).toBeNull();
});

test("an undo is shown once, and so is a request with its answer", () => {
  const events = {
    items: [
      event(6, "approval.answered", { approval: "a", answer: "once" }),
      event(5, "history.undone", { entry: 2 }),
      event(4, "approval.asked", { approval: "a", title: "rm x" }),
      event(3, "approval.asked", { approval: "b", title: "ls" }),
    ],
    more: false,
  };
  const rows = mergeRows(
    { items: [entry(2, 5, { kind: "undo" })], more: false },
    events,
    ["files", "decisions"],
    "",
    day,
  );
  expect(keys(rows)).toEqual(["day Today", "event 6", "entry 2", "event 3"]);
  expect(rows[1]).toMatchObject({ title: "Permission given, once", facts: "rm x" });
});

test("the search finds entries and events", () => {
  const entries = { items: [entry(2, 20, { who: { prompt: "make it dark" } }), entry(1, 10)], more: false };
  const events = { items: [event(15, "egress.denied", { host: "dark.example" })], more: false };
  expect(keys(mergeRows(entries, events, ["files", "network"], "DARK", day))).toEqual([
    "day Today",
    "entry 2",
    "event 15",
  ]);
  expect(keys(mergeRows(entries, events, ["files", "network"], "#1", day))).toEqual(["day Today", "entry 1"]);
});

test("a newer page replaces held entries, and each event is kept once", () => {
  expect(
    withNewest([entry(4, 0), entry(3, 0), entry(2, 0)], [entry(5, 0), entry(3, 0, { good: true })]).map((one) => [
      one.id,
      one.good,
    ]),
  ).toEqual([
    [5, false],
    [3, true],
    [2, false],
  ]);
  expect(withEvents([event(2, "a.b")], [event(3, "a.b"), event(2, "a.b")]).map((one) => one.seq)).toEqual([3, 2]);
});

test("a turn with several entries has a start", () => {
  expect([
    ...turnStarts([
      event(1, "turn.ended", { changes: { before: 3, entry: 6, added: 1 } }),
      event(2, "turn.ended", { changes: null }),
    ]),
  ]).toEqual([[6, 3]]);
});

test("an event has a title and facts", () => {
  expect(describeEvent(event(1, "identity.token_created", { name: "x" }))).toEqual({
    title: "Token created",
    facts: "name x",
  });
  expect(describeEvent(event(1, "boot.started")).title).toBe("Boot started");
  expect(describeEvent(event(1, "a.b", { a: null, b: "", c_d: { e: 1 }, f: "x".repeat(200) })).facts).toMatch(
    /^c d \{"e":1\} · f x{120}…$/,
  );
});

test("the owner is always called you", () => {
  expect(["owner", "token:chat-d64e513b", "token:laptop", "token:my-key", "system"].map(actorText)).toEqual([
    "you",
    "you, with token chat",
    "you, with token laptop",
    "you, with token my-key",
    "system",
  ]);
});

test("an answer to a network request is one row, and a rule of its own is another", () => {
  const items = [
    event(4, "egress.rule_added", { verdict: "deny", rule: "b.example", scope: "always", reason: "the owner said so" }),
    event(3, "egress.rule_added", {
      verdict: "allow",
      rule: "a.example:443",
      scope: "once",
      reason: "the owner answered network request 7 with once",
      request: 7,
    }),
    event(2, "egress.question_answered", { id: 7, target: "a.example:443", answer: "once", attempts: 1 }),
    event(1, "egress.question_asked", { id: 7, target: "a.example:443" }),
  ];
  const rows = mergeRows(null, { items, more: false }, ["decisions"], "", day);
  expect(rows.map((row) => (row.kind === "event" ? row.title : row.key))).toEqual([
    "day Today",
    "Rule added: deny b.example",
    "a.example:443 allowed, once",
  ]);
});

test("a request that a rule answered is shown with that rule", () => {
  expect(
    describeEvent(
      event(1, "egress.question_answered", { id: 1, target: "c.example:443", answer: "by the rule 'deny c.example'" }),
    ).title,
  ).toBe("c.example:443 denied, by the rule 'deny c.example'");
  expect(
    describeEvent(
      event(1, "egress.rule_removed", {
        verdict: "allow",
        rule: "a.example:443",
        scope: "once",
        reason: "it was used",
      }),
    ).title,
  ).toBe("a.example:443 connected, as allowed once");
});
