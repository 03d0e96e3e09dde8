// @vitest-environment happy-dom
import { beforeEach, expect, test, vi } from "vitest";
import { uploadFile } from "../../files/fileRequests";
import { takeUploads, uploadAttachments, uploadsOf } from "./attachmentUploads";
import { readDraft } from "./draft";

vi.mock("../../files/fileRequests", () => ({ uploadFile: vi.fn() }));

type Sending = { signal: AbortSignal; onProgress: (sent: number) => void; arrive: () => void };
let sending: Sending[];
const failed = vi.fn();
const file = (name: string) => new File(["0123456789"], name, { type: "text/csv" });
const settle = () => new Promise((done) => setTimeout(done));

beforeEach(() => {
  localStorage.clear();
  failed.mockClear();
  sending = [];
  vi.mocked(uploadFile).mockImplementation(
    (_path, _file, { signal, onProgress }) =>
      new Promise((arrive, refuse) => {
        sending.push({ signal, onProgress, arrive });
        signal.addEventListener("abort", () => refuse(new DOMException("cancelled", "AbortError")));
      }),
  );
});

test("a file is shown with its progress until it has arrived, and is then named in the message", async () => {
  const taken: string[] = [];
  const leave = takeUploads("a", (path) => taken.push(path));
  const over = uploadAttachments("a", [file("one.csv"), file("two.csv")], failed);
  expect(uploadsOf("a").map((one) => one.name)).toEqual(["one.csv", "two.csv"]);
  sending[0]?.onProgress(4);
  expect(uploadsOf("a")[0]?.sent).toBe(4);
  expect(taken).toEqual([]);
  sending[0]?.arrive();
  await settle();
  expect(taken).toHaveLength(1);
  expect(uploadsOf("a").map((one) => one.name)).toEqual(["two.csv"]);
  sending[1]?.arrive();
  await over;
  expect(uploadsOf("a")).toEqual([]);
  expect(taken[1]).toMatch(/^attachments\/.*two\.csv$/);
  leave();
});

test("a cancelled file is not named, and one that waits behind it is sent", async () => {
  const over = uploadAttachments("b", [file("one.csv"), file("two.csv"), file("three.csv")], failed);
  uploadsOf("b")[1]?.cancel();
  uploadsOf("b")[0]?.cancel();
  await settle();
  sending[1]?.arrive();
  await over;
  expect(sending).toHaveLength(2);
  expect(failed).not.toHaveBeenCalled();
  expect(readDraft("b").text).toMatch(/^@attachments\/[^ ]*three\.csv $/);
});

test("a file that arrives while its session is not shown is in its draft", async () => {
  const leave = takeUploads("c", () => expect.unreachable());
  const over = uploadAttachments("c", [file("late.csv")], failed);
  leave();
  sending[0]?.arrive();
  await over;
  expect(readDraft("c").text).toMatch(/late\.csv $/);
  expect(readDraft("c").picked).toHaveLength(1);
});

test("a refused file says so and holds nothing back", async () => {
  const over = uploadAttachments("d", [file("one.csv")], failed);
  vi.mocked(uploadFile).mockRejectedValueOnce(new Error("no"));
  sending[0]?.arrive();
  await over;
  await uploadAttachments("d", [file("two.csv")], failed);
  expect(failed).toHaveBeenCalledOnce();
  expect(uploadsOf("d")).toEqual([]);
});
