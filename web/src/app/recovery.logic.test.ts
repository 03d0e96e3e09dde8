import { expect, test } from "vitest";
import { isThisMachine, recoveryAccess } from "./recovery.logic";

test("on its own machine the recovery page is a link", () => {
  expect(recoveryAccess("http://recovery.localhost:8001/", "freehold.localhost")).toEqual({
    kind: "link",
    href: "http://recovery.localhost:8001/",
  });
  expect(["127.0.0.1", "[::1]", "5173.preview.localhost"].map(isThisMachine)).toEqual([true, true, true]);
});

test("from another machine a tunnel is needed, since the link alone would lead to the wrong machine", () => {
  expect(recoveryAccess("http://recovery.localhost:9001/", "freehold.example.net")).toEqual({
    kind: "tunnel",
    command: "ssh -L 9001:localhost:9001 freehold.example.net",
    href: "http://recovery.localhost:9001/",
  });
  expect(isThisMachine("localhost.example.net")).toBe(false);
});
