/** Requests of this page to its gateway. Knows no React. */

import { Connection, type Problem, RequestFailed } from "freehold-client/connection";
import { authorization } from "./signInKey";

export { type Problem, problemIn, RequestFailed } from "freehold-client/connection";

const connection = new Connection("", authorization);

/** Code on a slow network is there by then. A reply that nobody wanted until then says what was, not what is. */
const EARLY_LIFETIME = 30_000;
/** Replies that were asked for before the code that needs them was there, by their path. */
const early = new Map<string, { reply: Promise<unknown>; arrived: unknown }>();

/** Sends a request now. Its reply is that of the next `request` for this path, unless it has failed by then. */
export function requestEarly(path: string): void {
  const asked = { reply: connection.request(path), arrived: null as unknown };
  early.set(path, asked);
  const forget = () => early.delete(path);
  asked.reply.then((reply) => {
    asked.arrived = reply;
  }, forget);
  setTimeout(forget, EARLY_LIFETIME);
}

/** The reply that the next `request` for this path will have, when it is there already; else null. */
export const arrivedReply = (path: string): unknown => early.get(path)?.arrived ?? null;

export function request<T>(path: string, init?: Parameters<typeof connection.request>[1]): Promise<T> {
  const asked = init === undefined ? early.get(path) : undefined;
  if (asked === undefined) return connection.request<T>(path, init);
  early.delete(path);
  return asked.reply as Promise<T>;
}

export const requestLines = <T>(path: string, body: unknown) => connection.lines<T>(path, body);

/** What to show for anything that was thrown. */
export function problemOf(error: unknown): Problem {
  if (error instanceof RequestFailed) return error.problem;
  return { code: "page.error", message: "This page has an error.", hint: "Reload the page." };
}

/** The bytes at `path` and the tag of their version. */
export async function download(path: string): Promise<{ bytes: Uint8Array<ArrayBuffer>; etag: string }> {
  const response = await connection.send(path);
  return { bytes: new Uint8Array(await response.arrayBuffer()), etag: response.headers.get("etag") ?? "" };
}

/** Writes bytes to `path`. `headers` can hold a condition such as `if-match`. */
export async function upload<T>(
  path: string,
  body: Blob | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
): Promise<T> {
  const response = await connection.send(path, {
    method: "PUT",
    body,
    headers: { "content-type": "application/octet-stream", ...headers },
  });
  return (await response.json()) as T;
}

/** Sends bytes to `path` to be looked at. */
export async function post<T>(path: string, body: Blob): Promise<T> {
  const headers = { "content-type": "application/octet-stream" };
  const response = await connection.send(path, { method: "POST", body, headers });
  return (await response.json()) as T;
}

/** Starts a download as a link does. The browser streams it to the disk, so its size does not matter. */
export async function downloadAs(path: string, name: string): Promise<void> {
  // A link has no headers, so it carries a ticket. The ticket is for the address as the browser will write it.
  const { pathname, search } = new URL(path, location.origin);
  const body = { address: pathname + search };
  const { address } = await request<{ address: string }>("/v1/download-tickets", { method: "POST", body });
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
}
