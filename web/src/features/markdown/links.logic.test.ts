import { expect, test } from "vitest";
import { hostToTell, targetOf, workspacePath } from "./links.logic";

test("only the web, mail and files of the workspace can be gone to", () => {
  expect(targetOf("https://example.com/a?b#c")).toEqual({ kind: "web", href: "https://example.com/a?b#c", host: "example.com" });
  expect(targetOf("mailto:me@example.com").kind).toBe("web");
  for (const href of [
    "javascript:alert(1)",
    " JaVaScRiPt:alert(1)",
    "java\nscript:alert(1)",
    "data:text/html,x",
    "vbscript:x",
    "blob:http://localhost/x",
    "file:///etc/passwd",
    "//evil.example/x",
    "\\\\evil.example\\x",
    "/v1/stop",
    "/files?path=x",
    "../../etc/passwd",
    "a/%2e%2e/%2e%2e/b",
    "#fn",
    "?undo=last",
    "",
    "http://",
    "%E0%A4%A",
  ])
    expect(targetOf(href), href).toEqual({ kind: "none" });
});

test("a place in a file leads to the file", () => {
  expect(targetOf("src/app.py#L12")).toEqual({ kind: "file", path: "src/app.py" });
  expect(targetOf("./src/app.py:12:3")).toEqual({ kind: "file", path: "src/app.py" });
  expect(targetOf("main.py:12")).toEqual({ kind: "file", path: "main.py" });
  expect(targetOf("/workspace/a%20b.md")).toEqual({ kind: "file", path: "a b.md" });
  expect(workspacePath("/home/agent/x")).toBeNull();
  expect(workspacePath("/workspace")).toBeNull();
});

test("words that name another place than the link's do not go unnoticed", () => {
  expect(hostToTell("https://bank.example/login", targetOf("https://evil.example"))).toBe("evil.example");
  expect(hostToTell("bank.example", targetOf("https://bank.example.evil.net/"))).toBe("bank.example.evil.net");
  expect(hostToTell("https://bank.example/login", targetOf("https://bank.example/login"))).toBe("");
  expect(hostToTell("the docs", targetOf("https://example.com"))).toBe("");
  expect(hostToTell("main.py", targetOf("https://example.com/main.py"))).toBe("");
});
