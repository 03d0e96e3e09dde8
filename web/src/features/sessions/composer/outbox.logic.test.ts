import { expect, test } from "vitest";
import { isUncertain, keyFor, type OutgoingPrompt, parse, serialize } from "./outbox.logic";

const prompt = (more: Partial<OutgoingPrompt> = {}): OutgoingPrompt => ({
  key: "k",
  text: "hello",
  files: [],
  images: [],
  when: "now",
  ...more,
});

test("stored prompts are read again, and invalid ones are not", () => {
  expect(parse(serialize([prompt()]))).toEqual([prompt()]);
  expect(serialize([])).toBeNull();
  expect(parse("{]")).toEqual([]);
  expect(parse('[{"key": 1}]')).toEqual([]);
});

test("a prompt whose images are too large is not stored in part", () => {
  const large = prompt({ key: "large", images: [{ mime: "image/png", data: "x".repeat(3_000_000) }] });
  expect(parse(serialize([large, prompt()]))).toEqual([prompt()]);
});

test("a prompt that is sent again unchanged keeps its key, so that it never becomes two turns", () => {
  const fresh = () => "fresh";
  expect(keyFor({ text: "hello", files: [], images: [] }, prompt(), fresh)).toBe("k");
  expect(keyFor({ text: "hello!", files: [], images: [] }, prompt(), fresh)).toBe("fresh");
  expect(keyFor({ text: "hello", files: ["a"], images: [] }, prompt(), fresh)).toBe("fresh");
  expect(keyFor({ text: "hello", files: [], images: [] }, null, fresh)).toBe("fresh");
});

test("only a gateway that does not answer leaves it uncertain", () => {
  expect([0, 502, 503, 504].every((status) => isUncertain(status))).toBe(true);
  expect([400, 401, 409, 500].some((status) => isUncertain(status))).toBe(false);
  expect(isUncertain(503, "orchestrator.unavailable")).toBe(false);
});
