/** Talks to the gateway. Knows no React. */

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
  hint: "The keeper restarts it by itself. On its own machine freehold undo and the recovery page (port 8001 unless set otherwise) work without it.",
};

function isProblem(value: unknown): value is { error: Problem } {
  if (typeof value !== "object" || value === null || !("error" in value)) return false;
  const error = value.error;
  return typeof error === "object" && error !== null && "message" in error && typeof error.message === "string";
}

/** What to show for whatever was thrown. */
export function problemOf(error: unknown): Problem {
  if (error instanceof RequestFailed) return error.problem;
  return { code: "page.error", message: "This page failed.", hint: "Reload it." };
}

function readJson(text: string): unknown {
  try {
    return text === "" ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

async function ask(path: string, init: RequestInit): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(path, { credentials: "same-origin", ...init });
  } catch {
    throw new RequestFailed(0, UNREACHABLE);
  }
  if (answer.ok) return answer;
  const value = readJson(await answer.text());
  throw new RequestFailed(
    answer.status,
    isProblem(value)
      ? value.error
      : { code: "gateway.odd-answer", message: `Freehold answered ${answer.status}.`, hint: "Try again in a moment." },
  );
}

/** Ask for `path` and give back its JSON; every failure is a `RequestFailed` that can be shown. */
export async function request<T>(path: string, init: { method?: string; body?: unknown } = {}): Promise<T> {
  const answer = await ask(path, {
    method: init.method ?? "GET",
    headers: init.body === undefined ? {} : { "content-type": "application/json" },
    ...(init.body === undefined ? {} : { body: JSON.stringify(init.body) }),
  });
  return readJson(await answer.text()) as T;
}

/** The bytes behind `path` and the tag that says which version they are. */
export async function download(path: string): Promise<{ bytes: Uint8Array<ArrayBuffer>; etag: string }> {
  const answer = await ask(path, {});
  return { bytes: new Uint8Array(await answer.arrayBuffer()), etag: answer.headers.get("etag") ?? "" };
}

/** Put bytes at `path`; `headers` says on which condition. */
export async function upload<T>(path: string, body: Blob | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}): Promise<T> {
  const answer = await ask(path, { method: "PUT", body, headers: { "content-type": "application/octet-stream", ...headers } });
  return readJson(await answer.text()) as T;
}
