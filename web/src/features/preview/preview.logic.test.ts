import { expect, test } from "vitest";
import { choosePort, hasChangedFile, nameOf, readPath, readPort, scaleFor } from "./preview.logic";

const ports = [
  { port: 4000, process: "python3", service: null },
  { port: 5173, process: "node", service: "web" },
];

test("the wanted port is shown, even before anything listens there", () => {
  expect(choosePort(ports, 8000)).toBe(8000);
  expect(choosePort(ports, null)).toBe(5173);
  expect(choosePort(ports.slice(0, 1), null)).toBe(4000);
  expect(choosePort([], null)).toBeNull();
});

test("a port is a plain number", () => {
  expect(readPort("5173")).toBe(5173);
  for (const odd of [null, "", "80", "05173", "65536", "5173 ", "0x1435", "1e4", "-5173"])
    expect(readPort(odd)).toBeNull();
});

test("the name of a service comes before the name of a program", () => {
  expect(ports.map(nameOf)).toEqual(["python3", "web"]);
});

test("a typed path stays in the preview", () => {
  const origin = "http://5173.preview.localhost:3000";
  expect(readPath("", origin)).toBe("/");
  expect(readPath("about", origin)).toBe("/about");
  expect(readPath("/a b?x=1#y", origin)).toBe("/a%20b?x=1#y");
  expect(readPath(`${origin}/there`, origin)).toBe("/there");
  for (const odd of [
    "http://localhost:3000/",
    "//evil.example/x",
    "/\\evil",
    "javascript:alert(1)",
    "http://",
    `/${"x".repeat(3000)}`,
  ])
    expect(readPath(odd, origin)).toBeNull();
});

test("a page that is wider than the space is scaled down", () => {
  expect(scaleFor(820, 410)).toBe(0.5);
  expect(scaleFor(390, 410)).toBe(1);
  expect(scaleFor(null, 410)).toBe(1);
  expect(scaleFor(390, 0)).toBe(1);
});

test("a page is loaded again for files that it may show", () => {
  const changed = (...paths: string[]) => hasChangedFile({ items: paths.map((path) => ({ path, word: "changed" })) });
  expect(changed("workspace/src/App.tsx")).toBe(true);
  expect(changed("workspace/node_modules/.vite/deps/x.js", "workspace/a/.git/index", "home/.bashrc")).toBe(false);
  expect(hasChangedFile({ relist: true })).toBe(true);
  expect(hasChangedFile({})).toBe(false);
});
