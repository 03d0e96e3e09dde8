import { Connection } from "freehold-client/connection";
import { Pods } from "freehold-client/pods";
import { afterEach, expect, test, vi } from "vitest";

afterEach(() => vi.unstubAllGlobals());

function openPods(): { pods: Pods; asked: string[] } {
  const asked: string[] = [];
  vi.stubGlobal("fetch", async (address: string) => {
    asked.push(address);
    return new Response("{}");
  });
  const connection = new Connection("http://x", () => ({}));
  return {
    pods: new Pods({ connection, follow: () => Promise.reject(new Error("nothing to follow")) as never }),
    asked,
  };
}

test.each(["../../../me", "notes/../../../../me", "./a"])("%s reaches no other address", async (path) => {
  const { pods, asked } = openPods();
  const calls = [() => pods.delete(path), () => pods.read(path), () => pods.write(path, "x")];
  for (const call of calls) await expect(call()).rejects.toMatchObject({ problem: { code: "pods.invalid" } });
  expect(asked).toEqual([]);
});

test("a path is quoted by its parts", async () => {
  const { pods, asked } = openPods();
  await pods.delete("notes/ü 1?.txt");
  await pods.createFolder("notes/");
  expect(asked).toEqual(["http://x/v1/slots/pods/data/notes/%C3%BC%201%3F.txt", "http://x/v1/slots/pods/data/notes/"]);
});
