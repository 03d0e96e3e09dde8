import { expect, test } from "vitest";
import { filesIn, NONE, share, wantedOf, type Dropped } from "./uploads.logic";

const file = (name: string): File => new File(["x"], name);
const dropped = (name: string): Dropped => ({ isFile: true, isDirectory: false, name, file: (done) => done(file(name)) });

function folder(name: string, ...pieces: Dropped[][]): Dropped {
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

test("a dropped folder is walked to its end, piece by piece", async () => {
  const found = await filesIn([dropped("a.txt"), folder("src", [dropped("b.ts"), folder("deep", [dropped("c.ts")])], [dropped("d.ts")])], "in");
  expect(found.map((one) => one.to)).toEqual(["in/a.txt", "in/src/b.ts", "in/src/deep/c.ts", "in/src/d.ts"]);
});

test("picked files go into the folder that is open", () => {
  expect(wantedOf([file("a.txt")], "")[0]?.to).toBe("a.txt");
  expect(wantedOf([file("a.txt")], "src")[0]?.to).toBe("src/a.txt");
});

test("progress goes by bytes, and by files when they are empty", () => {
  expect(share(NONE)).toBe(0);
  expect(share({ ...NONE, total: 2, done: 1 })).toBe(0.5);
  expect(share({ ...NONE, total: 2, bytes: 100, sent: 25 })).toBe(0.25);
});
