// @vitest-environment happy-dom
import { act } from "react";
import { createRoot } from "react-dom/client";
import { expect, test, vi } from "vitest";
import type { SessionInfo } from "../../client/api";
import { request } from "../../client/http";
import { useEverySession } from "./useEverySession";

const every = Array.from({ length: 1_000 }, (_, at) => ({ id: `${at}` }) as SessionInfo);
const newest = { value: every.slice(0, 200) };
vi.mock("./SessionListProvider", () => ({ useSessionList: () => newest }));
vi.mock("../../client/http", () => ({ request: vi.fn() }));

test("of 1,000 sessions each is there once, also those after the first page", async () => {
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  vi.mocked(request).mockImplementation(async (path) => {
    const from = Number(new URLSearchParams(path.split("?")[1]).get("cursor"));
    const next = from + 200;
    return { sessions: every.slice(from, next), next: next < every.length ? `${next}` : null };
  });
  let found: readonly SessionInfo[] = [];
  function Page() {
    found = useEverySession();
    return null;
  }
  await act(async () => createRoot(document.body.appendChild(document.createElement("div"))).render(<Page />));
  await act(async () => undefined);
  expect(found.map((one) => one.id)).toEqual(every.map((one) => one.id));
  expect(vi.mocked(request)).toHaveBeenCalledTimes(5);
});
