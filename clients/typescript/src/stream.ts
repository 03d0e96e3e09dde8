/** Server-sent events as an async iteration. */

import { addQuery, type Connection, type Query, RequestFailed, readLines } from "./connection.ts";

const FIRST_RETRY = 100;
const MAX_RETRY = 10_000;
/** Milliseconds without a line after which a stream counts as lost. The other side sends one every few seconds. */
const SILENCE = 60_000;

/** The last event that was received, and the wait before the next attempt to connect. */
export class StreamPosition {
  after: number | null;
  private wait = FIRST_RETRY;
  private kind = "";
  private data = "";
  private id: number | null = null;

  constructor(after: number | null) {
    this.after = after;
  }

  /** The data of a message that this line ends; null while there is none. */
  receive(line: string): string | null {
    if (line === "") {
      const { kind, data, id } = this;
      this.forgetPart();
      if (id !== null) {
        this.after = id;
        this.wait = FIRST_RETRY;
      }
      return data !== "" && kind === "" ? data : null;
    }
    const colon = line.indexOf(":");
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") this.data = this.data === "" ? value : `${this.data}\n${value}`;
    else if (name === "event") this.kind = value;
    else if (name === "id" && /^[0-9]+$/.test(value)) this.id = Number(value);
    return null;
  }

  /** Milliseconds before the next attempt; twice as many after each that brought nothing. */
  nextWait(): number {
    this.forgetPart();
    const wait = this.wait;
    this.wait = Math.min(MAX_RETRY, wait * 2);
    return wait;
  }

  /** What was received of an unfinished message comes again. */
  private forgetPart(): void {
    this.kind = this.data = "";
    this.id = null;
  }
}

/**
 * The data of server-sent events. Reconnects by itself and goes on after the last one received. Ends only when the loop
 * is left, or with a `RequestFailed` that a retry cannot solve.
 */
export async function* followEvents(
  connection: Connection,
  path: string,
  after: number | null,
  query: Query,
): AsyncGenerator<string> {
  const position = new StreamPosition(after);
  for (;;) {
    const giveUp = new AbortController();
    const watch = () => setTimeout(() => giveUp.abort(), SILENCE);
    let silence = watch();
    try {
      const address = addQuery(path, { ...query, after: position.after });
      const response = await connection.send(address, { signal: giveUp.signal });
      for await (const line of readLines(response)) {
        clearTimeout(silence);
        const data = position.receive(line);
        if (data !== null) yield data;
        silence = watch();
      }
    } catch (error) {
      if (!(error instanceof RequestFailed) || !canRetry(error.status)) throw error;
    } finally {
      clearTimeout(silence);
    }
    await new Promise((resolve) => setTimeout(resolve, position.nextWait()));
  }
}

const canRetry = (status: number): boolean => status === 0 || status === 429 || status >= 500;
