// @vitest-environment happy-dom
import { act } from "react";
import { createRoot } from "react-dom/client";
import { afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { HOSTILE } from "./hostile";
import { Markdown } from "./Markdown";

const parsed = vi.hoisted(() => ({ texts: [] as string[], fails: false }));
vi.mock("react-markdown", async (original) => {
  const { default: Real } = await original<typeof import("react-markdown")>();
  return {
    default: (props: { children: string }) => {
      parsed.texts.push(props.children);
      if (parsed.fails) throw new RangeError("Maximum call stack size exceeded");
      return <Real {...props} />;
    },
  };
});

let place: HTMLDivElement;
const draw = (text: string, live = false) => {
  const root = createRoot(place);
  return act(async () => root.render(<Markdown text={text} live={live} />));
};

const drafts: { first?: HTMLDivElement } = {};
beforeAll(async () => {
  // The first drawing loads the parser.
  place = document.createElement("div");
  createRoot(place).render(<Markdown text="**one** [two](https://example.com)" />);
  await vi.waitFor(() => {
    if (place.querySelector("p")) drafts.first ??= place.cloneNode(true) as HTMLDivElement;
    expect(place.querySelector("a")).not.toBeNull();
  }, 30_000);
});

beforeEach(() => {
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  parsed.texts = [];
  parsed.fails = false;
  place = document.createElement("div");
  document.body.append(place);
});
afterEach(() => {
  place.remove();
  vi.restoreAllMocks();
});

test("the words are shown without marks and addresses until the parser is loaded", () => {
  expect(drafts.first?.querySelector("p")?.textContent).toBe("one two");
  expect(drafts.first?.querySelector("a")).toBeNull();
});

test("a block that was drawn before is not parsed again", async () => {
  await draw("Drawn *once*.\n\nAnd this.");
  expect(parsed.texts).toEqual(["Drawn *once*.\n", "And this."]);
  place.replaceChildren();
  await draw("Drawn *once*.\n\nAnd that.");
  expect(parsed.texts).toEqual(["Drawn *once*.\n", "And this.", "And that."]);
  expect([...place.querySelectorAll("p")].map((one) => one.textContent)).toEqual(["Drawn once.", "And that."]);
  expect(place.querySelector("p em")?.textContent).toBe("once");
});

test.each(Object.keys(HOSTILE))("%s: what is parsed is limited, and so is what is drawn", async (name) => {
  const text = HOSTILE[name] ?? "";
  await draw(text);
  for (const block of parsed.texts) expect(block.length).toBeLessThanOrEqual(16_000);
  expect(parsed.texts.join("").length).toBeLessThanOrEqual(20_000);
  expect(place.querySelectorAll("*").length).toBeLessThan(6_000);
  expect(place.textContent?.length).toBeLessThan(60_000);
  expect(place.textContent?.replaceAll(/\W/g, "").length).toBeGreaterThanOrEqual(/\w/.test(text) ? 1 : 0);
});

test.each(["nested quotes", "nested lists", "a long line", "nested emphasis"])("%s is shown plain", async (name) => {
  const text = HOSTILE[name] ?? "";
  await draw(text);
  expect(parsed.texts).toEqual([]);
  expect(place.querySelector("pre")?.textContent).toBe(text.slice(0, 10_000));
});

test("a text that the parser cannot draw is shown plain, and the next one is tried again", async () => {
  const root = createRoot(place);
  parsed.fails = true;
  await act(async () => root.render(<Markdown text="**one**" live />));
  expect(place.querySelector("pre")?.textContent).toBe("**one**");
  expect(place.textContent).toContain("could not be drawn");
  parsed.fails = false;
  await act(async () => root.render(<Markdown text="**one** and" live />));
  expect(place.querySelector("strong")?.textContent).toBe("one");
});

test("a long message is drawn in parts, from its start when it is complete and at its end while it is written", async () => {
  const text = Array.from({ length: 2_000 }, (_, part) => `Part ${part} of it, with some words.`).join("\n\n");
  await draw(text);
  expect(place.textContent).toContain("Part 0 of");
  expect(place.textContent).not.toContain("Part 1999 of");
  const before = place.querySelectorAll("p").length;
  await act(async () => place.querySelector<HTMLButtonElement>(".markdown-more button")?.click());
  expect(place.querySelectorAll("p").length).toBeGreaterThan(before + 100);
  const other = document.createElement("div");
  place.replaceWith(other);
  place = other;
  await draw(text, true);
  expect(place.textContent).toContain("Part 1999 of");
  expect(place.textContent).not.toContain("Part 0 of");
});

test("characters that hide or reorder are shown in plain text and code", async () => {
  await draw(`\`a\u202eb\` ${"> ".repeat(100)}\n\n${"> ".repeat(100)}x\u200by`);
  expect(place.querySelector("code")?.textContent).toBe("a⟨U+202E⟩b");
  expect(place.querySelector("pre")?.textContent).toContain("x⟨U+200B⟩y");
});
