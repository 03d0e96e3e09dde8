import { expect, test, vi } from "vitest";
import { MAX_WAITING, OutputQueue } from "./outputQueue";

const piece = (text: string) => ({ text, cost: text.length });

test("the next piece is drawn when the one before it is drawn", () => {
  const drawn: string[] = [];
  let done = () => {};
  const queue = new OutputQueue({
    draw: (text, finished) => {
      drawn.push(text);
      done = finished;
    },
    onOverflow: () => undefined,
  });
  queue.add([piece("one"), piece("two")]);
  queue.add([piece("three")]);
  expect(drawn).toEqual(["one"]);
  done();
  expect(drawn).toEqual(["one", "two"]);
  queue.clear();
  done();
  expect(drawn).toEqual(["one", "two"]);
  queue.add([piece("four")]);
  expect(drawn).toEqual(["one", "two", "four"]);
});

test("a flood that is faster than the screen is dropped, and asked for again", () => {
  const onOverflow = vi.fn();
  const queue = new OutputQueue({ draw: () => undefined, onOverflow });
  const flood = piece("x".repeat(30_000));
  for (let sent = 0; sent < MAX_WAITING; sent += 30_000) queue.add([flood]);
  expect(onOverflow).not.toHaveBeenCalled();
  queue.add([flood, flood]);
  expect(onOverflow).toHaveBeenCalledOnce();
});
