/** Requests to the gateway. Knows no React. */

import { authorization } from "./signInKey";

export interface Problem {
  code: string;
  message: string;
  hint: string;
  error_id?: string;
}

export class RequestFailed extends Error {
  constructor(
    readonly status: number,
    readonly problem: Problem,
  ) {
    super(problem.message);
  }
}

const UNREACHABLE: Problem = {
  code: "gateway.unreachable",
  message: "Freehold does not answer.",
  hint: "The keeper restarts it. On its machine, freehold undo and the recovery page (port 8001 by default) work without it.",
};

/** What to show for a failed request whose body is not an error of ours. */
function unexpectedReply(status: number): Problem {
  return {
    code: "gateway.unexpected-reply",
    message: `Freehold answered with status ${status}.`,
    hint: "Try again in a moment.",
  };
}

function isProblem(value: unknown): value is { error: Problem } {
  if (typeof value !== "object" || value === null || !("error" in value)) return false;
  const error = value.error;
  return typeof error === "object" && error !== null && "message" in error && typeof error.message === "string";
}

/** The problem in the body of a failed reply. */
export function problemIn(body: string, status: number): Problem {
  const value = parseJson(body);
  return isProblem(value) ? value.error : unexpectedReply(status);
}

/** What to show for anything that was thrown. */
export function problemOf(error: unknown): Problem {
  if (error instanceof RequestFailed) return error.problem;
  return { code: "page.error", message: "This page has an error.", hint: "Reload the page." };
}

function parseJson(text: string): unknown {
  try {
    return text === "" ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

type Init = Omit<RequestInit, "headers"> & { headers?: Record<string, string> };

async function send(path: string, init: Init): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, { ...init, headers: { ...authorization(), ...init.headers } });
  } catch {
    throw new RequestFailed(0, UNREACHABLE);
  }
  if (response.ok) return response;
  throw new RequestFailed(response.status, problemIn(await response.text(), response.status));
}

/** Sends a request and returns the JSON of its reply. Every failure is a `RequestFailed` that can be shown. */
export async function request<T>(path: string, init: { method?: string; body?: unknown } = {}): Promise<T> {
  const response = await send(path, {
    method: init.method ?? "GET",
    headers: init.body === undefined ? {} : { "content-type": "application/json" },
    ...(init.body === undefined ? {} : { body: JSON.stringify(init.body) }),
  });
  return parseJson(await response.text()) as T;
}

/**
 * The lines of a reply, each as JSON and as soon as it has arrived. Leaving the loop early hangs up. A reply that ends in
 * the middle is a `RequestFailed`.
 */
export async function* requestLines<T>(path: string, body: unknown): AsyncGenerator<T> {
  const response = await send(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (reader === undefined) return;
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read().catch(() => {
        throw new RequestFailed(0, UNREACHABLE);
      });
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) if (line !== "") yield JSON.parse(line) as T;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** The bytes at `path` and the tag of their version. */
export async function download(path: string): Promise<{ bytes: Uint8Array<ArrayBuffer>; etag: string }> {
  const response = await send(path, {});
  return { bytes: new Uint8Array(await response.arrayBuffer()), etag: response.headers.get("etag") ?? "" };
}

/** Writes bytes to `path`. `headers` can hold a condition such as `if-match`. */
export async function upload<T>(
  path: string,
  body: Blob | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
): Promise<T> {
  const response = await send(path, {
    method: "PUT",
    body,
    headers: { "content-type": "application/octet-stream", ...headers },
  });
  return parseJson(await response.text()) as T;
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
