import { expect, test } from "vitest";
import { isThisMachine, wayToRecovery } from "./recovery.logic";

test("on its own machine the recovery page is a link", () => {
  expect(wayToRecovery("http://localhost:8001/", "localhost")).toEqual({ how: "link", href: "http://localhost:8001/" });
  expect(["127.0.0.1", "[::1]", "5173.preview.localhost"].map(isThisMachine)).toEqual([true, true, true]);
});

test("from afar it takes a tunnel, and the link alone would lead to another machine", () => {
  expect(wayToRecovery("http://127.0.0.1:9001/", "freehold.example.net")).toEqual({
    how: "tunnel",
    command: "ssh -L 9001:localhost:9001 freehold.example.net",
    href: "http://localhost:9001/",
  });
  expect(isThisMachine("localhost.example.net")).toBe(false);
});
