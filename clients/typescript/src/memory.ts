/** What agents remember: `home.memory`. */

import type {
  ForgottenMemory,
  MemoryImport,
  MemoryMatches,
  MemoryOrigin,
  MemoryPage,
  MemoryRecords,
  MemoryStatus,
  Memory as StoredMemory,
  UpdateMemory,
} from "./api.ts";
import type { Link } from "./freehold.ts";
import { allRecords } from "./records.ts";

const ENTRIES = "/v1/slots/memory/entries";

export interface MemoryFilter {
  namespace?: string;
  origin?: MemoryOrigin["kind"];
  pinned?: boolean;
  text?: string;
  limit?: number;
  cursor?: string;
}

export interface StoreOptions {
  /** `shared`, `project:NAME` or `agent:NAME`. */
  namespace?: string;
  /** When it is forgotten. */
  expires?: Date;
  key?: string;
}

/** The token needs the scope `memory`. A `key` makes a change happen once, however often it is sent. */
export class Memory {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  /** One page of memories, last changed first. */
  list(filter: MemoryFilter = {}): Promise<MemoryPage> {
    return this.link.connection.get(ENTRIES, { limit: 50, ...filter });
  }

  /** Memories that answer a question, by meaning and by exact words. */
  search(
    query: string,
    { namespaces = [], limit = 5 }: { namespaces?: readonly string[]; limit?: number } = {},
  ): Promise<MemoryMatches> {
    return this.link.connection.post("/v1/slots/memory/search", { query, namespaces, limit });
  }

  get(memory: string): Promise<StoredMemory> {
    return this.link.connection.get(addressOf(memory));
  }

  store(text: string, { namespace = "shared", expires, key }: StoreOptions = {}): Promise<StoredMemory> {
    return this.link.connection.post(ENTRIES, { text, namespace, expires, key });
  }

  /** Set fields of a memory; `expires` is a time, or "never". With `version`, only that version. */
  update(memory: string, fields: UpdateMemory): Promise<StoredMemory> {
    return this.link.connection.patch(addressOf(memory), fields);
  }

  /** Remove a memory for good. */
  async forget(memory: string): Promise<void> {
    await this.link.connection.delete<ForgottenMemory>(addressOf(memory));
  }

  /** The namespaces, and what makes meanings comparable. */
  status(): Promise<MemoryStatus> {
    return this.link.connection.get("/v1/slots/memory/status");
  }

  /** Every memory as a record. */
  export(): AsyncGenerator<MemoryRecords["records"][number]> {
    return allRecords(this.link.connection, "/v1/slots/memory/export");
  }

  /** Store records, at most 200 at once: all of them, or none. */
  importRecords(records: MemoryRecords["records"]): Promise<MemoryImport> {
    return this.link.connection.post("/v1/slots/memory/import", { records });
  }
}

const addressOf = (memory: string): string => `${ENTRIES}/${encodeURIComponent(memory)}`;
