// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { askEarly } from "./early";
import { RequestFailed, request } from "./http";

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
  vi.unstubAllGlobals();
  localStorage.clear();
});

test("what a page asks for first is on its way before its code is there, and is asked for once", async () => {
  history.replaceState(null, "", "/sessions?id=a%20b");
  askEarly();
  expect(asked).toEqual(["/v1/me", "/v1/sessions?limit=200", "/v1/sessions/a%20b/events?limit=400"]);
  expect(await request("/v1/sessions?limit=200")).toEqual({ number: 2 });
  expect(asked).toHaveLength(3);
  expect(await request("/v1/sessions?limit=200"), "the next one is asked anew").toEqual({ number: 4 });
  expect(await request("/v1/me", { method: "POST" }), "another request is not its reply").toEqual({ number: 5 });
  for (const path of ["/v1/me", "/v1/sessions/a%20b/events?limit=400"]) await request(path);
  expect(asked).toHaveLength(5);
});

test("who waits for it is told of its failure, and who asks later asks anew", async () => {
  status = 401;
  history.replaceState(null, "", "/files");
  askEarly();
  expect(asked).toHaveLength(2);
  await expect(request("/v1/me")).rejects.toThrow(RequestFailed);
  status = 200;
  expect(await request("/v1/sessions?limit=200")).toEqual({ number: 3 });
});

test("without a sign-in nothing is asked", () => {
  history.replaceState(null, "", "/sign-in");
  askEarly();
  localStorage.clear();
  history.replaceState(null, "", "/sessions");
  askEarly();
  expect(asked).toEqual([]);
});
