/** Code in isolates of the computer: `home.code`. Every call needs the scope `terminal`. */

import type {
  CodeContext,
  CodeContextDeleted,
  CodeGrants,
  CodeLimits,
  CodePart,
  CodeResult,
  ExecuteCode,
} from "./api.ts";
import { fromBase64, toBase64 } from "./base64.ts";
import { RequestFailed } from "./connection.ts";
import type { Link } from "./freehold.ts";

export type Language = ExecuteCode["language"];

export interface RunOptions {
  /** A function of a WASM module, with numbers: `add(40, 2)`. */
  call?: string;
  /** The arguments of a program. */
  arguments?: readonly string[];
  /** Seconds. */
  timeout?: number;
  /** Files for the folder of the code. */
  inputs?: Record<string, Uint8Array>;
  /** Patterns of files there that come back. */
  outputs?: readonly string[];
}

export interface IsolateOptions {
  limits?: CodeLimits;
  grants?: CodeGrants;
}

/** The code of `wasm` is a module: its bytes, or its text. */
export class Code {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  /** Run code in a sealed process of its own. */
  execute(
    language: Language,
    code: string | Uint8Array,
    { limits, grants, ...options }: RunOptions & IsolateOptions = {},
  ): Promise<CodeResult> {
    const body = { ...describe(code, options), ...describeIsolate(language, { limits, grants }) };
    return this.link.connection.post("/v1/code/execute", body);
  }

  /**
   * The value of the last expression: JSON, bytes, or a table as an object with `columns` and `rows`.
   * Throws if the code fails.
   */
  async evaluate(
    language: Language,
    code: string | Uint8Array,
    options: RunOptions & IsolateOptions = {},
  ): Promise<unknown> {
    return readValue(await this.execute(language, code, options));
  }

  /** Run a file of the computer, as `execute` runs code. Relative paths are below the workspace. */
  executeFile(
    language: Language,
    path: string,
    { limits, grants, ...options }: RunOptions & IsolateOptions = {},
  ): Promise<CodeResult> {
    const body = { ...describe("", options), ...describeIsolate(language, { limits, grants }), file: path };
    return this.link.connection.post("/v1/code/execute", body);
  }

  /** As `execute`, with each part as it arrives. Leaving the loop ends the code. */
  stream(
    language: Language,
    code: string | Uint8Array,
    { limits, grants, ...options }: RunOptions & IsolateOptions = {},
  ): AsyncGenerator<CodePart> {
    const body = { ...describe(code, options), ...describeIsolate(language, { limits, grants }) };
    return this.parts("/v1/code/stream", body);
  }

  /** A context keeps variables until it is deleted or was not used for `code.keep_contexts`. */
  createContext(
    language: Language,
    { label = "", limits, grants }: { label?: string } & IsolateOptions = {},
  ): Promise<CodeContext> {
    return this.link.connection.post("/v1/code/contexts", { label, ...describeIsolate(language, { limits, grants }) });
  }

  contexts(): Promise<CodeContext[]> {
    return this.link.connection.get("/v1/code/contexts");
  }

  context(id: string): Promise<CodeContext> {
    return this.link.connection.get(addressOf(id));
  }

  /** Run code with the variables of a context. */
  executeIn(id: string, code: string | Uint8Array, options: RunOptions = {}): Promise<CodeResult> {
    return this.link.connection.post(`${addressOf(id)}/execute`, describe(code, options));
  }

  /** Run a file of the computer with the variables of a context. Relative paths are below the workspace. */
  executeFileIn(id: string, path: string, options: RunOptions = {}): Promise<CodeResult> {
    return this.link.connection.post(`${addressOf(id)}/execute`, { ...describe("", options), file: path });
  }

  /** As `evaluate`, with the variables of a context. */
  async evaluateIn(id: string, code: string | Uint8Array, options: RunOptions = {}): Promise<unknown> {
    return readValue(await this.executeIn(id, code, options));
  }

  /** As `executeIn`, with each part as it arrives. Leaving the loop interrupts the code; the variables stay. */
  streamIn(id: string, code: string | Uint8Array, options: RunOptions = {}): AsyncGenerator<CodePart> {
    return this.parts(`${addressOf(id)}/stream`, describe(code, options));
  }

  /** Interrupt what runs in the context, whoever started it. The variables stay. */
  interruptContext(id: string): Promise<CodeContext> {
    return this.link.connection.post(`${addressOf(id)}/interrupt`, {});
  }

  /** Forget all variables and files of the context. */
  resetContext(id: string): Promise<CodeContext> {
    return this.link.connection.post(`${addressOf(id)}/reset`, {});
  }

  deleteContext(id: string): Promise<CodeContextDeleted> {
    return this.link.connection.delete(addressOf(id));
  }

  private async *parts(path: string, body: unknown): AsyncGenerator<CodePart> {
    for await (const part of this.link.connection.lines<CodePart>(path, body)) {
      if (part.failure) throw new RequestFailed(500, part.failure);
      yield part;
    }
  }
}

const addressOf = (id: string): string => `/v1/code/contexts/${encodeURIComponent(id)}`;

function readValue({ limit, error, exit_code, duration, items }: CodeResult): unknown {
  if (limit)
    throw failed(
      "computer.limit",
      `The code reached the limit \`${limit}\` of its isolate after ${duration.toFixed(1)} s`,
      `Raise ${limit} in \`limits\`, or change the code`,
    );
  if (error || exit_code) {
    const said = error ? `${error.name}: ${error.message}` : `exit code ${exit_code}`;
    throw failed("computer.code-failed", `The code failed: ${said}`, "Change the code and run it again");
  }
  const item = items.find(({ role }) => role === "value");
  if (!item) return null;
  if (item.text === null) return fromBase64(item.data ?? "");
  if (item.type !== "json" && item.type !== "table") return item.text;
  try {
    return JSON.parse(item.text);
  } catch {
    throw failed("client.odd-answer", "The value of the code is not valid JSON", "`execute` returns it as it came");
  }
}

const failed = (code: string, message: string, hint: string) => new RequestFailed(500, { code, message, hint });

function describe(code: string | Uint8Array, { inputs = {}, ...options }: RunOptions) {
  const source = typeof code === "string" ? { code } : { module: toBase64(code) };
  const files = Object.entries(inputs).map(([name, content]) => [name, toBase64(content)]);
  return { ...source, ...options, inputs: Object.fromEntries(files) };
}

function describeIsolate(
  language: Language,
  { limits, grants }: { limits: CodeLimits | undefined; grants: CodeGrants | undefined },
) {
  return { language, limits: limits ?? {}, grants: grants ?? {} };
}
