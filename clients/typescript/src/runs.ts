/** Agents that work in parallel: `home.runs`. */

import type { Run, RunChanges, RunEvent, RunEvents, RunPage, TakeChanges } from "./api.ts";
import type { Link } from "./freehold.ts";

const RUNS = "/v1/slots/orchestrator/runs";
/** Seconds for which a request waits for the next event. */
const WAIT = 5;

export interface SpawnOptions {
  /** Default: the default agent. */
  agent?: string;
  model?: string;
  title?: string;
  /** A folder of the workspace of which it gets a copy. */
  folder?: string;
  /** The folder as it was right after this entry of history. Default: as it is now. */
  entry?: number;
  /** It is ended when it has cost more. */
  budget?: number;
  /** What it may do besides working in its computer. Default: everything. Without ask, what it asks is answered with no. */
  permissions?: Run["permissions"];
  key?: string;
}

/**
 * The token needs the scope `orchestrator`, `prompt` to begin a run, and `history` to begin it from an older state. It
 * ends runs that it began, and takes their changes; with the scope `admin` also those of others.
 */
export class Runs {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  /** Let an agent work on a prompt, in a throw-away computer with a copy of a folder of the workspace. */
  spawn(prompt: string, options: SpawnOptions = {}): Promise<Run> {
    return this.link.connection.post(RUNS, { prompt, ...options });
  }

  list(options: { parent?: string; active?: boolean; limit?: number; cursor?: string } = {}): Promise<RunPage> {
    return this.link.connection.get(RUNS, { limit: 50, ...options });
  }

  get(run: string): Promise<Run> {
    return this.link.connection.get(addressOf(run));
  }

  /** What its agent says and does, until the run has finished. */
  async *stream(run: string, after = 0): AsyncGenerator<RunEvent> {
    for (let at = after; ; ) {
      const found: RunEvents = await this.link.connection.get(`${addressOf(run)}/events`, { after: at, wait: WAIT });
      yield* found.events;
      at = found.cursor;
      if (found.run.finished !== null && found.events.length === 0) return;
    }
  }

  stop(run: string): Promise<Run> {
    return this.link.connection.post(`${addressOf(run)}/stop`, {});
  }

  /** What it has changed in its copy, beside the files as they are now. */
  changes(run: string): Promise<RunChanges> {
    return this.link.connection.get(`${addressOf(run)}/changes`);
  }

  /** Merge its changes into the workspace, or drop them. Throws `orchestrator.conflict` when others changed a file. */
  takeChanges(
    run: string,
    how: TakeChanges["how"],
    { force = false, key }: { force?: boolean; key?: string } = {},
  ): Promise<Run> {
    return this.link.connection.post(`${addressOf(run)}/changes`, { how, force, key });
  }
}

const addressOf = (run: string): string => `${RUNS}/${encodeURIComponent(run)}`;
