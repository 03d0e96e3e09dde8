import { Connection, RequestFailed } from "freehold-client/connection";
import { followEvents, StreamPosition } from "freehold-client/stream";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

type Reply = (signal: AbortSignal) => Response;

const later = globalThis.setTimeout;

let asked: string[];
let replies: Reply[];

beforeEach(() => {
  vi.useFakeTimers();
  asked = [];
  replies = [];
  vi.stubGlobal("fetch", async (address: string, init: RequestInit) => {
    asked.push(address);
    const reply = replies.shift();
    if (reply === undefined) throw new TypeError("no route to host");
    return reply(init.signal!);
  });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const says =
  (text: string): Reply =>
  () =>
    new Response(text);

/** Nothing comes until the reader gives up. */
const silence: Reply = (signal) => {
  const body = new ReadableStream({
    start: (stream) => signal.addEventListener("abort", () => stream.error(new Error("given up"))),
  });
  return new Response(body);
};

/** What arrives until the iteration fails, and the error. Time passes by seconds, and streams are read between. */
async function collect(after: number | null): Promise<[string[], unknown]> {
  const seen: string[] = [];
  let failure: unknown = null;
  const following = (async () => {
    for await (const data of followEvents(new Connection("", () => ({})), "/stream", after, { type: ["a", "b"] }))
      seen.push(data);
  })().catch((error: unknown) => {
    failure = error;
  });
  while (failure === null) {
    await vi.advanceTimersByTimeAsync(1_000);
    await new Promise((resolve) => later(resolve, 0));
  }
  await following;
  return [seen, failure];
}

const REFUSED = () => new Response("{}", { status: 401 });

test("a stream goes on after the last whole message, and nothing comes twice", async () => {
  replies = [says("id: 5\ndata: one\n\nid: 6\nda"), says("id: 6\ndata: two\n\n: still here\n\n"), REFUSED];
  const [seen, error] = await collect(4);
  expect(seen).toEqual(["one", "two"]);
  expect(asked.map((address) => new URL(address, "http://x").searchParams.get("after"))).toEqual(["4", "5", "6"]);
  expect(asked[0]).toContain("type=a&type=b");
  expect(error).toBeInstanceOf(RequestFailed);
  expect((error as RequestFailed).status).toBe(401);
});

test("a stream that is silent is given up and begun again", async () => {
  replies = [silence, () => new Response("", { status: 503 }), says("id: 1\ndata: late\n\n"), REFUSED];
  expect((await collect(null))[0]).toEqual(["late"]);
  expect(asked).toHaveLength(4);
});

test("messages of a named type are not data, and lines of one message belong together", () => {
  const position = new StreamPosition(null);
  const lines = ["event: position", "id: 5", "data: {}", "", "data: a", "data:b: c", "", "id: 6", ""];
  expect(lines.map((line) => position.receive(line)).filter((data) => data !== null)).toEqual(["a\nb: c"]);
  expect(position.after).toBe(6);
  const waits = [position.nextWait(), position.nextWait()] as const;
  expect(waits[0]).toBeLessThan(waits[1]);
});
