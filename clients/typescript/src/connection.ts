/** Requests to one Freehold. */

export interface Problem {
  code: string;
  message: string;
  hint: string;
  error_id?: string;
}

/** A request that failed. `problem` says what happened and what to do; `status` is 0 if there was no reply. */
export class RequestFailed extends Error {
  readonly status: number;
  readonly problem: Problem;

  constructor(status: number, problem: Problem) {
    super(problem.message);
    this.name = "RequestFailed";
    this.status = status;
    this.problem = problem;
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

function parseJson(text: string): unknown {
  try {
    return text === "" ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

type Headers = Record<string, string>;
type Init = Omit<RequestInit, "headers"> & { headers?: Headers };

/** Query parameters; those that are null or undefined are left out, and a list is sent once for each value. */
export type Query = Record<string, string | number | boolean | readonly string[] | null | undefined>;

export function addQuery(path: string, query: Query): string {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    for (const one of Array.isArray(value) ? value : [value])
      if (one !== null && one !== undefined) found.append(name, String(one));
  const text = found.toString();
  return text === "" ? path : `${path}?${text}`;
}

/**
 * `url` is the address of the Freehold; empty for the one that served this page. `headers` are asked for each request.
 * Every failure is a `RequestFailed`. Redirects are not followed, so that no header is sent to another address.
 */
export class Connection {
  readonly url: string;
  private readonly headers: () => Headers;

  constructor(url: string, headers: () => Headers) {
    this.url = url;
    this.headers = headers;
  }

  readonly send = async (path: string, init: Init = {}): Promise<Response> => {
    let response: Response;
    try {
      const headers = { ...this.headers(), ...init.headers };
      response = await fetch(this.url + path, { redirect: "error", ...init, headers });
    } catch {
      throw new RequestFailed(0, UNREACHABLE);
    }
    if (response.ok) return response;
    throw new RequestFailed(response.status, problemIn(await response.text(), response.status));
  };

  /** Sends a request and returns the JSON of its reply. */
  readonly request = async <T>(
    path: string,
    init: { method?: string; body?: unknown; signal?: AbortSignal } = {},
  ): Promise<T> => {
    const response = await this.send(path, {
      method: init.method ?? "GET",
      ...(init.signal === undefined ? {} : { signal: init.signal }),
      headers: init.body === undefined ? {} : { "content-type": "application/json" },
      ...(init.body === undefined ? {} : { body: JSON.stringify(init.body) }),
    });
    return parseJson(await response.text()) as T;
  };

  readonly get = <T>(path: string, query: Query = {}): Promise<T> => this.request<T>(addQuery(path, query));

  readonly post = <T>(path: string, body: unknown): Promise<T> => this.request<T>(path, { method: "POST", body });

  readonly put = <T>(path: string, body: unknown): Promise<T> => this.request<T>(path, { method: "PUT", body });

  readonly patch = <T>(path: string, body: unknown): Promise<T> => this.request<T>(path, { method: "PATCH", body });

  readonly delete = <T>(path: string): Promise<T> => this.request<T>(path, { method: "DELETE" });

  /**
   * The lines of a reply, each as JSON and as soon as it has arrived. Leaving the loop early hangs up. A reply that ends
   * in the middle is a `RequestFailed`.
   */
  async *lines<T>(path: string, body: unknown): AsyncGenerator<T> {
    const response = await this.send(path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    for await (const line of readLines(response)) if (line !== "") yield JSON.parse(line) as T;
  }
}

/** The lines of a reply, each as soon as it has arrived. A last one without an end is left out. */
export async function* readLines(response: Response): AsyncGenerator<string> {
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
      yield* lines;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
