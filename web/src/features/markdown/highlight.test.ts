import { expect, test, vi } from "vitest";
import { highlight } from "./highlight";

test("code is highlighted, and no character of it is lost", async () => {
  const code = "def f(x):\n    return 'a' + str(x)\n";
  const spans = await highlight(code, "py");
  expect(spans?.map((span) => span.text).join("")).toBe(code);
  expect(spans?.some((span) => span.className !== "")).toBe(true);
});

test.each([
  ["too long", "a = 1\n".repeat(10_000), "py"],
  ["too many pieces", "[1,".repeat(6_000), "json"],
])("code that is %s is not highlighted", async (_, code, language) => {
  expect(await highlight(code, language).catch(() => null)).toBeNull();
});

test("code that takes the parser too long is not highlighted", async () => {
  const clock = vi.spyOn(performance, "now");
  let now = 0;
  clock.mockImplementation(() => (now += 60));
  expect(await highlight("a = (1 + 2)\n".repeat(500), "py")).toBeNull();
  clock.mockRestore();
});
