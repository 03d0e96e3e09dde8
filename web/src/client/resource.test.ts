import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { RequestFailed } from "./http";
import { RELOAD, Resource, type ResourceOptions } from "./resource";

interface Reply {
  answer: (value: number[]) => void;
  refuse: (error: unknown) => void;
}

let replies: Reply[];

beforeEach(() => {
  vi.useFakeTimers();
  replies = [];
});
afterEach(() => {
  vi.useRealTimers();
});

const add = (value: number[], event: unknown) =>
  value.includes(event as number) ? value : [...value, event as number].sort();

function resource(options: Partial<ResourceOptions<number[]>> = {}): Resource<number[]> {
  return new Resource<number[]>({
    fetch: () => new Promise((answer, refuse) => replies.push({ answer, refuse })),
    ...options,
  });
}

const settle = () => vi.advanceTimersByTimeAsync(0);

test("an event that arrives while a list is fetched is not lost, and none counts twice", async () => {
  const list = resource({ apply: add });
  list.reload();
  list.receive(3);
  list.receive(2);
  replies[0]!.answer([1, 2]);
  await settle();
  expect(list.state().value).toEqual([1, 2, 3]);
  list.receive(3);
  expect(list.state().value).toEqual([1, 2, 3]);
  expect(replies).toHaveLength(1);
});

test("only the newest reply counts", async () => {
  const list = resource();
  list.reload();
  await settle();
  list.reload();
  replies[1]!.answer([2]);
  await settle();
  replies[0]!.answer([1]);
  await settle();
  expect(list.state().value).toEqual([2]);
});

test("the first reply is shown while a second request is in flight, and nothing older is shown later", async () => {
  const list = resource({ apply: add });
  list.reload();
  await settle();
  list.reload();
  list.receive(3);
  replies[0]!.answer([1]);
  await settle();
  expect(list.state().value).toEqual([1, 3]);
  await settle();
  list.reload();
  list.receive(4);
  replies[1]!.answer([1]);
  await settle();
  expect(list.state().value).toEqual([1, 3, 4]);
  replies[2]!.answer([1, 3]);
  await settle();
  expect(list.state().value).toEqual([1, 3, 4]);
  expect(replies).toHaveLength(3);
});

test("reloads of one task make one request", async () => {
  const list = resource();
  list.reload();
  list.reload();
  expect(replies).toHaveLength(1);
  await settle();
  list.reload();
  expect(replies).toHaveLength(2);
});

test("an event that cannot be applied reloads, also when a request was in flight", async () => {
  const list = resource({ apply: () => RELOAD });
  list.reload();
  await settle();
  list.receive("changed");
  expect(replies).toHaveLength(1);
  replies[0]!.answer([1]);
  await settle();
  expect(list.state().value).toEqual([1]);
  expect(replies).toHaveLength(2);
  replies[1]!.answer([2]);
  await settle();
  expect(list.state().value).toEqual([2]);
  expect(replies).toHaveLength(2);
});

test("a burst of events costs one request, and endless events do not postpone it for ever", async () => {
  const list = resource({ delay: 100 });
  list.reload();
  replies[0]!.answer([]);
  await settle();
  for (let event = 0; event < 3; event++) list.receive(event);
  await vi.advanceTimersByTimeAsync(99);
  expect(replies).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(replies).toHaveLength(2);
  replies[1]!.answer([]);
  await settle();
  for (let event = 0; event < 20; event++) {
    list.receive(event);
    await vi.advanceTimersByTimeAsync(50);
  }
  expect(replies.length).toBeGreaterThan(2);
});

test("a failed reload keeps the last value, and the next success clears the problem", async () => {
  const list = resource();
  list.reload();
  replies[0]!.answer([1]);
  await settle();
  list.reload();
  replies[1]!.refuse(new RequestFailed(503, { code: "x", message: "not now", hint: "" }));
  await settle();
  expect(list.state()).toMatchObject({ value: [1], problem: { message: "not now" } });
  list.reload();
  replies[2]!.answer([2]);
  await settle();
  expect(list.state()).toEqual({ value: [2], problem: null });
});

test("the reply of an action wins over a request that was sent before it", async () => {
  const list = resource();
  const seen = vi.fn();
  list.subscribe(seen);
  list.reload();
  list.set([9]);
  replies[0]!.answer([1]);
  await settle();
  expect(list.state().value).toEqual([9]);
  expect(seen).toHaveBeenCalledOnce();
});

test("a fetched page can be merged with older pages that are held", async () => {
  const list = resource({
    merge: (held, page) => [...page, ...(held ?? []).filter((one) => one < page[page.length - 1]!)],
  });
  list.reload();
  replies[0]!.answer([9, 8]);
  await settle();
  list.update((held) => [...held, 7, 6]);
  list.reload();
  replies[1]!.answer([10, 9]);
  await settle();
  expect(list.state().value).toEqual([10, 9, 8, 7, 6]);
});

test("after a stop nothing arrives any more", async () => {
  const list = resource({ delay: 10 });
  list.reload();
  list.stop();
  replies[0]!.answer([1]);
  await settle();
  expect(list.state().value).toBeNull();
});

test("what is known from before is the value until the reply is there", async () => {
  const list = resource({ first: [1], apply: add });
  expect(list.state().value).toEqual([1]);
  list.reload();
  list.receive(3);
  expect(list.state().value).toEqual([1, 3]);
  replies[0]!.answer([1, 2]);
  await settle();
  expect(list.state().value).toEqual([1, 2, 3]);
});

test("a reply that says what is known tells nobody", async () => {
  const list = resource({ first: [1, 2] });
  const { value } = list.state();
  let told = 0;
  list.subscribe(() => told++);
  list.reload();
  replies[0]!.answer([1, 2]);
  await settle();
  expect(list.state().value).toBe(value);
  expect(told).toBe(0);
  list.reload();
  replies[1]!.answer([1, 3]);
  await settle();
  expect(told).toBe(1);
});
