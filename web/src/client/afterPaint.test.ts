// @vitest-environment happy-dom
import { afterEach, expect, test, vi } from "vitest";
import { afterPaint } from "./afterPaint";

afterEach(() => vi.restoreAllMocks());

const frame = () => new Promise((done) => requestAnimationFrame(done));
const task = () => new Promise((done) => setTimeout(done));

test("it is called when the frame was painted", async () => {
  const action = vi.fn();
  afterPaint(action);
  await frame();
  await frame();
  expect(action).not.toHaveBeenCalled();
  await vi.waitFor(() => expect(action).toHaveBeenCalledOnce());
});

test("it can be prevented, before each frame and after them", async () => {
  const action = vi.fn();
  afterPaint(action)();
  const prevents = [afterPaint(action), afterPaint(action)];
  await frame();
  prevents[0]?.();
  await frame();
  prevents[1]?.();
  await frame();
  await task();
  expect(action).not.toHaveBeenCalled();
});

test("a hidden page, which paints nothing, does not wait for a frame", async () => {
  vi.spyOn(document, "hidden", "get").mockReturnValue(true);
  const frames = vi.spyOn(window, "requestAnimationFrame");
  const action = vi.fn();
  afterPaint(action);
  afterPaint(action)();
  await vi.waitFor(() => expect(action).toHaveBeenCalledOnce());
  expect(frames).not.toHaveBeenCalled();
});
