/** The history of the files: `home.history`. */

import type {
  HistoryChanges,
  HistoryComparison,
  HistoryDiff,
  HistoryEntry,
  HistoryOutcome,
  HistoryPage,
  HistoryPlan,
  RestoreCancellation,
  RestoreProgress,
  ShownFile,
} from "./api.ts";
import { fromBase64 } from "./base64.ts";
import type { Link } from "./freehold.ts";

export type Choices = Record<string, "old" | "mine">;
export type RestoreOptions = { restoreId?: string };

export class History {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  /** Entries, the newest first. `path` selects entries that changed it; `before` selects older entries. */
  async log(options: { path?: string; before?: number; limit?: number } = {}): Promise<HistoryEntry[]> {
    const query = { limit: 50, ...options };
    return (await this.link.connection.get<HistoryPage>("/v1/history", query)).entries;
  }

  /** The paths that one entry changed. */
  changes(entry: number, { limit = 1000 }: { limit?: number } = {}): Promise<HistoryChanges> {
    return this.link.connection.get(`/v1/history/${entry}`, { limit });
  }

  /** The lines that one entry changed. */
  diff(entry: number, { path }: { path?: string } = {}): Promise<HistoryDiff> {
    return this.link.connection.get(`/v1/history/${entry}/diff`, { path });
  }

  /** The difference between two states. `old` is an entry, the last good entry, or the entry before `new`. */
  compare(
    old: number | "before" | "good" = "before",
    now: number | "now" = "now",
    { path }: { path?: string } = {},
  ): Promise<HistoryComparison> {
    return this.link.connection.get("/v1/history/compare", { old, new: now, path });
  }

  /** Mark an entry as good, or remove the mark. */
  markGood(entry: number, { good = true }: { good?: boolean } = {}): Promise<HistoryEntry> {
    return this.link.connection.post(`/v1/history/${entry}/good`, { good });
  }

  /** The content of a file in the state of an entry. */
  async show(entry: number, path: string): Promise<Uint8Array<ArrayBuffer>> {
    const shown = await this.link.connection.get<ShownFile>(`/v1/history/${entry}/file`, { path });
    return fromBase64(shown.base64 ?? "");
  }

  /** What an action would do to each path. Changes nothing. */
  plan(
    action: "undo" | "redo" | "restore" | "revert",
    options: { entry?: number; paths?: readonly string[]; choose?: Choices } = {},
  ): Promise<HistoryPlan> {
    return this.link.connection.post("/v1/history/plan", { action, ...options });
  }

  /**
   * Take back an entry and all later ones; by default the last entry. An undo can be undone.
   * `restoreId` is a name of your choice, new for each call, with which `restores` and `cancelRestore` find it.
   */
  undo(entry: number | null = null, options: RestoreOptions = {}): Promise<HistoryOutcome> {
    return this.change("undo", { entry }, options);
  }

  /** Take back the last undo. */
  redo(options: RestoreOptions = {}): Promise<HistoryOutcome> {
    return this.change("redo", {}, options);
  }

  /** Restore paths, or everything, to the state of an entry. */
  restore(entry: number, paths: readonly string[] = [], options: RestoreOptions = {}): Promise<HistoryOutcome> {
    return this.change("restore", { entry, paths }, options);
  }

  /** Take back only the changes of one entry, or all after `since` up to it, and keep later changes. */
  revert(
    entry: number,
    choose: Choices = {},
    options: RestoreOptions & { since?: number | null } = {},
  ): Promise<HistoryOutcome> {
    return this.change("revert", { entry, choose, since: options.since }, options);
  }

  /** How far each undo, redo, restore, revert and rewind is that runs or waits, the oldest first. */
  restores(): Promise<RestoreProgress[]> {
    return this.link.connection.get("/v1/history/restores");
  }

  /** Cancel one of them, unless it changes files already. Whoever asked for it gets the error `history.cancelled`. */
  async cancelRestore(restoreId: string): Promise<RestoreCancellation["outcome"]> {
    const path = `/v1/history/restores/${encodeURIComponent(restoreId)}/cancel`;
    return (await this.link.connection.post<RestoreCancellation>(path, {})).outcome;
  }

  private change(verb: string, body: object, { restoreId }: RestoreOptions): Promise<HistoryOutcome> {
    return this.link.connection.post(`/v1/history/${verb}`, { ...body, restore_id: restoreId });
  }
}
