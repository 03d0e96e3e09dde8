import { expect, test } from "vitest";
import type { RestoreProgress } from "../../client/api";
import {
  announcementOf,
  beginRun,
  cancelState,
  newRestoreId,
  promiseOf,
  seeCancellation,
  seeRestores,
  wordsOf,
} from "./restore.logic";

function progress(change: Partial<RestoreProgress> = {}): RestoreProgress {
  const words = "Preparing the files: 20 of 80";
  return { id: "mine", kind: "undo", phase: "preparing", done: 20, total: 80, cancellable: true, words, ...change };
}
const changing = progress({ phase: "changing", cancellable: false, words: "Changing the files: 20 of 80" });
const run = beginRun("mine");

test("each change of files has a name of its own that the API accepts", () => {
  const names = Array.from({ length: 50 }, newRestoreId);
  expect(new Set(names).size).toBe(50);
  for (const name of names) expect(name).toMatch(/^[0-9a-f]{16}$/);
});

test("it can be cancelled from the first moment until files change", () => {
  expect(cancelState(run)).toBe("possible");
  expect(cancelState(seeRestores(run, [progress({ id: "another" }), progress()]))).toBe("possible");
  expect(cancelState(seeRestores(run, [changing]))).toBe("too late");
  expect(promiseOf(seeRestores(run, [changing]))).toBe(
    "Files are being changed. This will finish, and you can undo it then.",
  );
});

test("one that is not listed yet has not arrived; one that is not listed any more is over", () => {
  const early = seeRestores(run, []);
  expect([early.isOver, wordsOf(early), cancelState(early)]).toEqual([false, "Starting", "possible"]);
  const late = seeRestores(seeRestores(run, [changing]), []);
  expect([late.isOver, wordsOf(late), cancelState(late)]).toEqual([true, "Finishing", "too late"]);
});

test("the page says that nothing has changed only when that is certain", () => {
  const asked = { ...seeRestores(run, [progress()]), cancel: "asked" as const };
  expect([cancelState(asked), promiseOf(asked)]).toEqual(["under way", "Cancelling…"]);
  const cancelled = seeCancellation(asked, { outcome: "cancelled" });
  expect([cancelState(cancelled), promiseOf(cancelled)]).toEqual(["under way", "Cancelling. No file has changed."]);
  const late = seeCancellation(asked, { outcome: "too-late" });
  expect([cancelState(late), promiseOf(late)]).toEqual(["too late", promiseOf(seeRestores(run, [changing]))]);
  expect(seeCancellation(asked, { outcome: "not-found" }).cancel).toBe("asked");
});

test("one that was cancelled elsewhere says so", () => {
  const elsewhere = seeRestores(run, [progress({ cancellable: false })]);
  expect([cancelState(elsewhere), promiseOf(elsewhere)]).toEqual(["under way", "Cancelling. No file has changed."]);
});

test("a screen reader hears each phase and each quarter, not each number", () => {
  const heard = (done: number) =>
    announcementOf(seeRestores(run, [progress({ done, words: `Preparing: ${done} of 80` })]));
  expect(new Set(Array.from({ length: 81 }, (_, done) => heard(done))).size).toBe(5);
  expect(heard(41)).toBe("Preparing, 50 %. No file has changed yet.");
});
