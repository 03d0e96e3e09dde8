// @vitest-environment happy-dom
import { act } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { arrivedReply, RequestFailed, request } from "../client/http";
import type { LiveSocket, TopicListener } from "../client/socket";
import { SocketContext } from "./connection";
import { KeptValues, KeptValuesContext } from "./keptValues";
import { useResource } from "./resource";

vi.mock("../client/http", async (original) => ({
  ...(await original<object>()),
  request: vi.fn(),
  arrivedReply: vi.fn(() => null),
}));
(globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;

interface Reply {
  path: string;
  answer: (words: string) => void;
  refuse: (error: unknown) => void;
}

let replies: Reply[];
let root: Root;
/** What was drawn, one after the other. */
let drawn: (string | null)[];

beforeEach(() => {
  replies = [];
  drawn = [];
  vi.mocked(request).mockImplementation(
    (path) => new Promise((answer, refuse) => replies.push({ path, answer: answer as Reply["answer"], refuse })),
  );
  root = createRoot(document.body.appendChild(document.createElement("div")));
});
afterEach(() => act(async () => root.unmount()));

function Page({ path }: { path: string }) {
  drawn.push(useResource<string>(path, { keep: (words) => words.slice(0, 5) }).value);
  return null;
}

const show = (path: string, kept: KeptValues) =>
  act(async () =>
    root.render(
      <KeptValuesContext value={kept}>
        <Page path={path} />
      </KeptValuesContext>,
    ),
  );
const answer = (words: string) => act(async () => replies.at(-1)!.answer(words));

test("what was shown before is shown at once, and then what the reply says", async () => {
  const kept = new KeptValues();
  await show("/a", kept);
  await answer("first words");
  await show("/b", kept);
  await answer("other");
  drawn = [];
  await show("/a", kept);
  expect(drawn[0], "what is kept of it").toBe("first");
  expect(replies.at(-1)!.path).toBe("/a");
  await answer("later words");
  expect(drawn.at(-1)).toBe("later words");
});

test("what was refused or was kept for another sign-in is not shown", async () => {
  const kept = new KeptValues();
  await show("/a", kept);
  await answer("words");
  await show("/b", kept);
  await show("/a", kept);
  await act(async () => replies.at(-1)!.refuse(new RequestFailed(404, { code: "", message: "", hint: "" })));
  await show("/b", kept);
  await answer("other");
  drawn = [];
  await show("/a", kept);
  expect(drawn[0]).toBeNull();
  await show("/b", new KeptValues());
  expect(drawn.at(-1)).toBeNull();
});

test("a reply that was there before is drawn at first, and is not drawn twice", async () => {
  const early = { words: ["one", "two"] };
  vi.mocked(arrivedReply).mockReturnValueOnce(early);
  const shown: unknown[] = [];
  function Words() {
    shown.push(useResource<string[]>("/words", { read: (reply) => (reply as typeof early).words }).value);
    return null;
  }
  await act(async () => root.render(<Words />));
  await act(async () => (replies.at(-1)!.answer as (reply: unknown) => void)({ words: ["one", "two"] }));
  expect(shown).toEqual([["one", "two"]]);
});

test("what a page is not opened for is asked for after the first paint, once", async () => {
  let paint: () => void = () => undefined;
  vi.spyOn(window, "requestAnimationFrame").mockImplementation((draw) => {
    paint = () => draw(0);
    return 1;
  });
  // The topic is subscribed to at once, as it is when another component listens to it already.
  const subscribe = (_: string, listener: TopicListener) => {
    listener.subscribed?.(1);
    return () => undefined;
  };
  const socket = { subscribe } as unknown as LiveSocket;
  function Secondary() {
    useResource<string>("/later", { topic: "timeline", isSecondary: true });
    useResource<string>("/now", { topic: "timeline" });
    return null;
  }
  await act(async () =>
    root.render(
      <SocketContext.Provider value={socket}>
        <Secondary />
      </SocketContext.Provider>,
    ),
  );
  expect(replies.map((one) => one.path)).toEqual(["/now"]);
  paint();
  paint();
  await act(async () => vi.waitFor(() => expect(replies.map((one) => one.path)).toEqual(["/now", "/later"])));
  vi.restoreAllMocks();
});

test("the values that were not used for longest are given up", () => {
  const kept = new KeptValues();
  for (let at = 0; at < 30; at++) {
    kept.set(`/${at}`, at);
    kept.set("/used", "again");
  }
  expect(kept.get("/used")).toBe("again");
  expect(kept.get("/29")).toBe(29);
  expect(kept.get("/0")).toBeNull();
});
