// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { askEarly } from "./early";
import { arrivedReply, RequestFailed, request } from "./http";

let asked: string[];
let status = 200;

beforeEach(() => {
  asked = [];
  status = 200;
  localStorage.setItem("freehold.sign-in", "key");
  vi.stubGlobal("fetch", async (path: string) => {
    asked.push(path);
    return new Response(JSON.stringify({ number: asked.length }), { status });
  });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  localStorage.clear();
});

const NEWEST = "/v1/sessions?limit=200";
const EVENTS = "/v1/sessions/a%20b/events?limit=400";

test("what a page asks for first is on its way before its code is there, and is asked for once", async () => {
  history.replaceState(null, "", "/sessions?id=a%20b");
  askEarly();
  expect(asked).toEqual(["/v1/me", EVENTS, NEWEST, "/v1/agents", "/v1/models"]);
  expect(await request(NEWEST)).toEqual({ number: 3 });
  expect(asked).toHaveLength(5);
  expect(await request(NEWEST), "the next one is asked anew").toEqual({ number: 6 });
  expect(await request("/v1/me", { method: "POST" }), "another request is not its reply").toEqual({ number: 7 });
  for (const path of ["/v1/me", EVENTS, "/v1/agents", "/v1/models"]) await request(path);
  expect(asked).toHaveLength(7);
});

test("a reply that has arrived can be drawn before it is asked for", async () => {
  history.replaceState(null, "", "/files");
  askEarly();
  expect(arrivedReply(NEWEST)).toBeNull();
  await vi.waitFor(() => expect(arrivedReply(NEWEST)).toEqual({ number: 2 }));
  expect(await request(NEWEST)).toEqual({ number: 2 });
  expect(arrivedReply(NEWEST)).toBeNull();
  await request("/v1/me");
});

test("who waits for it is told of its failure, and who asks later asks anew", async () => {
  status = 401;
  history.replaceState(null, "", "/files");
  askEarly();
  expect(asked).toHaveLength(2);
  await expect(request("/v1/me")).rejects.toThrow(RequestFailed);
  status = 200;
  expect(await request(NEWEST)).toEqual({ number: 3 });
});

test("a reply that nobody wanted for long is asked for anew", async () => {
  vi.useFakeTimers();
  history.replaceState(null, "", "/files");
  askEarly();
  await vi.advanceTimersByTimeAsync(29_000);
  expect(await request("/v1/me")).toEqual({ number: 1 });
  await vi.advanceTimersByTimeAsync(2_000);
  expect(arrivedReply(NEWEST)).toBeNull();
  expect(await request(NEWEST)).toEqual({ number: 3 });
});

test("without a sign-in nothing is asked", () => {
  history.replaceState(null, "", "/sign-in");
  askEarly();
  localStorage.clear();
  history.replaceState(null, "", "/sessions");
  askEarly();
  expect(asked).toEqual([]);
});
