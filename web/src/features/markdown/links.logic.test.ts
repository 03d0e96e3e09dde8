import { expect, test } from "vitest";
import { linkTarget, misleadingHost, workspacePath } from "./links.logic";

test("a link leads only to the web, to mail or to a file of the workspace", () => {
  expect(linkTarget("https://example.com/a?b#c")).toEqual({
    kind: "web",
    href: "https://example.com/a?b#c",
    host: "example.com",
  });
  expect(linkTarget("mailto:me@example.com").kind).toBe("web");
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
    expect(linkTarget(href), href).toEqual({ kind: "none" });
});

test("a link to a line leads to its file", () => {
  expect(linkTarget("src/app.py#L12")).toEqual({ kind: "file", path: "src/app.py" });
  expect(linkTarget("./src/app.py:12:3")).toEqual({ kind: "file", path: "src/app.py" });
  expect(linkTarget("main.py:12")).toEqual({ kind: "file", path: "main.py" });
  expect(linkTarget("/workspace/a%20b.md")).toEqual({ kind: "file", path: "a b.md" });
  expect(workspacePath("/home/agent/x")).toBeNull();
  expect(workspacePath("/workspace")).toBeNull();
});

test("a link whose text names another host shows its real host", () => {
  expect(misleadingHost("https://bank.example/login", linkTarget("https://evil.example"))).toBe("evil.example");
  expect(misleadingHost("bank.example", linkTarget("https://bank.example.evil.net/"))).toBe("bank.example.evil.net");
  expect(misleadingHost("https://bank.example/login", linkTarget("https://bank.example/login"))).toBe("");
  expect(misleadingHost("the docs", linkTarget("https://example.com"))).toBe("");
  expect(misleadingHost("main.py", linkTarget("https://example.com/main.py"))).toBe("");
});
