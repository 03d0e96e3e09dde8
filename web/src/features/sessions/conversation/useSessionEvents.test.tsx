// @vitest-environment happy-dom
import { act } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { SessionEvent } from "../../../client/api";
import { request } from "../../../client/http";
import type { TopicListener } from "../../../client/socket";
import { KeptValues, KeptValuesContext } from "../../../data/keptValues";
import { type LoadedEvents, useSessionEvents } from "./useSessionEvents";

let listener: TopicListener;
vi.mock("../../../data/connection", () => ({
  useTopic: (name: string | null, given: TopicListener) => {
    if (name !== null) listener = given;
  },
}));
vi.mock("../../../client/http", async (original) => ({ ...(await original<object>()), request: vi.fn() }));
(globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;

const kept = new KeptValues();
let root: Root;
let shown: LoadedEvents;
let answers: ((events: readonly SessionEvent[]) => void)[];

beforeEach(() => {
  answers = [];
  vi.mocked(request).mockImplementation(
    () => new Promise((answer) => answers.push((events) => answer({ events, next: null, streaming: [] }))),
  );
  root = createRoot(document.body.appendChild(document.createElement("div")));
});
afterEach(() => act(async () => root.unmount()));

function Session({ id }: { id: string }) {
  shown = useSessionEvents(id);
  return null;
}

const open = (id: string) =>
  act(async () =>
    root.render(
      <KeptValuesContext value={kept}>
        <Session id={id} />
      </KeptValuesContext>,
    ),
  );
const event = (seq: number): SessionEvent => ({ seq, at: "", turn: 1, kind: "message", data: {} });
const events = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => event(from + at));
const answer = (from: number, to: number) => act(async () => answers.at(-1)!(events(from, to)));
const seqs = () => shown.events.map((one) => one.seq);

test("a session that was open before is there at once, and what came meanwhile follows", async () => {
  await open("a");
  expect(shown.loaded).toBe(false);
  await answer(1, 3);
  const before = shown.events;
  await open("b");
  expect([shown.loaded, seqs()]).toEqual([false, []]);
  await answer(1, 9);
  await open("a");
  expect(shown.loaded).toBe(true);
  expect(shown.events).toBe(before);
  await answer(1, 3);
  expect(shown.events, "the reply says the same").toBe(before);
  await open("b");
  await open("a");
  await answer(1, 4);
  expect(seqs()).toEqual([1, 2, 3, 4]);
});

test("a page is read once, and again when an event came between it and the subscription", async () => {
  await open("once");
  await act(async () => listener.subscribed?.(3));
  await answer(1, 3);
  expect(answers).toHaveLength(1);
  await open("missed");
  await act(async () => listener.subscribed?.(4));
  await answer(1, 3);
  expect(answers).toHaveLength(3);
  await answer(1, 4);
  expect(seqs()).toEqual([1, 2, 3, 4]);
  await open("late");
  await answer(1, 3);
  await act(async () => listener.subscribed?.(4));
  expect(answers).toHaveLength(5);
  await answer(1, 3);
  expect(answers, "it is not asked without an end").toHaveLength(5);
  await act(async () => listener.subscribed?.(4));
  expect(answers, "after a break it is read again").toHaveLength(6);
});

test("of a long session the newest page is kept", async () => {
  await open("long");
  await answer(601, 1_000);
  shown.loadOlder();
  await answer(201, 600);
  expect(shown.events).toHaveLength(800);
  await open("b");
  await open("long");
  expect(shown.hasOlder).toBe(true);
  expect([shown.events[0]!.seq, shown.events.at(-1)!.seq]).toEqual([601, 1_000]);
  await answer(1_500, 1_899);
  expect(shown.events[0]!.seq, "a gap is not hidden").toBe(1_500);
});
