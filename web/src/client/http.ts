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
  hint: "The keeper restarts it by itself; the recovery page is on port 8001 of the same machine.",
};

function isProblem(value: unknown): value is { error: Problem } {
  if (typeof value !== "object" || value === null || !("error" in value)) return false;
  const error = value.error;
  return typeof error === "object" && error !== null && "message" in error && typeof error.message === "string";
}

/** Ask for `path` and give back its JSON; every failure is a `RequestFailed` that can be shown. */
export async function request<T>(path: string, init: { method?: string; body?: unknown } = {}): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(path, {
      method: init.method ?? "GET",
      credentials: "same-origin",
      headers: init.body === undefined ? {} : { "content-type": "application/json" },
      ...(init.body === undefined ? {} : { body: JSON.stringify(init.body) }),
    });
  } catch {
    throw new RequestFailed(0, UNREACHABLE);
  }
  const text = await answer.text();
  let value: unknown = null;
  try {
    value = text === "" ? null : JSON.parse(text);
  } catch {
    value = null;
  }
  if (answer.ok) return value as T;
  throw new RequestFailed(
    answer.status,
    isProblem(value)
      ? value.error
      : { code: "gateway.odd-answer", message: `Freehold answered ${answer.status}.`, hint: "Try again in a moment." },
  );
}
