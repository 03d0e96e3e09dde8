import { expect, test } from "vitest";
import { type DroppedEntry, fractionDone, NO_PROGRESS, readDropped, uploadsOf } from "./uploads.logic";

const file = (name: string): File => new File(["x"], name);
const dropped = (name: string): DroppedEntry => ({
  isFile: true,
  isDirectory: false,
  name,
  file: (done) => done(file(name)),
});

function folder(name: string, ...pieces: DroppedEntry[][]): DroppedEntry {
  return {
    isFile: false,
    isDirectory: true,
    name,
    createReader: () => {
      const left = [...pieces];
      return { readEntries: (done) => done(left.shift() ?? []) };
    },
  };
}

test("a dropped folder is read to its end", async () => {
  const found = await readDropped(
    [dropped("a.txt"), folder("src", [dropped("b.ts"), folder("deep", [dropped("c.ts")])], [dropped("d.ts")])],
    "in",
  );
  expect(found.map((one) => one.to)).toEqual(["in/a.txt", "in/src/b.ts", "in/src/deep/c.ts", "in/src/d.ts"]);
});

test("picked files go into the open folder", () => {
  expect(uploadsOf([file("a.txt")], "")[0]?.to).toBe("a.txt");
  expect(uploadsOf([file("a.txt")], "src")[0]?.to).toBe("src/a.txt");
});

test("progress counts bytes, or files when they are empty", () => {
  expect(fractionDone(NO_PROGRESS)).toBe(0);
  expect(fractionDone({ ...NO_PROGRESS, total: 2, done: 1 })).toBe(0.5);
  expect(fractionDone({ ...NO_PROGRESS, total: 2, bytes: 100, sent: 25 })).toBe(0.25);
});
