// @vitest-environment happy-dom
import { act } from "react";
import { createRoot } from "react-dom/client";
import { expect, test } from "vitest";
import type { SessionEvent } from "../../../client/api";
import { ToolCard } from "./ToolCard";
import { transcriptItems } from "./transcript.logic";
import { TranscriptContext, type TranscriptShared } from "./transcriptContext";

const shared: TranscriptShared = {
  session: "s",
  toggled: new Set(),
  toggle: () => undefined,
  endedTurns: new Set(),
  lastPrompt: null,
  turnStateOf: () => ({ kind: "none" }) as unknown as ReturnType<TranscriptShared["turnStateOf"]>,
  onAction: () => undefined,
  onRewind: () => undefined,
};

test("a long edit is counted whole and can be shown to its end, and so can the one after it", async () => {
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  const long = Array.from({ length: 1_000 }, (_, line) => `l${line}\n`).join("");
  const content = [
    { type: "diff", path: "/workspace/long.txt", old: null, new: long },
    { type: "diff", path: "/workspace/short.txt", old: "a\n", new: "b\n" },
  ];
  const data = { id: "t", title: "Write", kind: "edit", status: "completed", locations: [], content, raw_input: null };
  const event: SessionEvent = { seq: 1, at: "2026-11-15T10:00:00.000Z", turn: 1, kind: "tool", data };
  const [item] = transcriptItems([event]);
  if (item?.kind !== "tool") throw new Error("no tool call");
  const place = document.createElement("div");
  await act(async () =>
    createRoot(place).render(
      <TranscriptContext value={shared}>
        <ToolCard item={item} />
      </TranscriptContext>,
    ),
  );
  expect(place.querySelector(".line-counts")?.textContent).toBe("+1001 −1");
  expect(place.querySelectorAll("tr")).toHaveLength(600);
  expect(place.textContent).not.toContain("No line changed.");
  const more = [...place.querySelectorAll("button")].filter((one) => one.textContent?.includes("more lines"));
  expect(more.map((one) => one.textContent)).toEqual(["Show 400 more lines of 400", "Show 2 more lines of 2"]);
  await act(async () => more[0]?.click());
  expect(place.querySelectorAll("tr")).toHaveLength(1_002);
});
