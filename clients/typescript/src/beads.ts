/** Work items: `home.beads`. */

import type {
  Bead,
  BeadDetails,
  BeadImport,
  BeadPage,
  BeadRecords,
  BeadSession,
  BeadWork,
  CreateBead,
  UpdateBead,
} from "./api.ts";
import type { Link } from "./freehold.ts";
import { allRecords } from "./records.ts";

const ITEMS = "/v1/slots/beads/items";

export interface BeadFilter {
  status?: Bead["status"];
  /** Only items that are open and not blocked. */
  ready?: boolean;
  kind?: Bead["kind"];
  label?: string;
  holder?: string;
  parent?: string;
  text?: string;
  limit?: number;
  cursor?: string;
}

/** The token needs the scope `beads`. A `key` makes a change happen once, however often it is sent. */
export class Beads {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  /** One page of items, by priority and age. */
  list(filter: BeadFilter = {}): Promise<BeadPage> {
    return this.link.connection.get(ITEMS, { limit: 50, ...filter });
  }

  /** One item with its comments and its history. */
  get(bead: string): Promise<BeadDetails> {
    return this.link.connection.get(addressOf(bead));
  }

  /** What the sessions that worked on an item changed in the files, the newest first. */
  changes(bead: string): Promise<BeadWork[]> {
    return this.link.connection.get(`${addressOf(bead)}/changes`);
  }

  create(title: string, options: Omit<CreateBead, "title"> = {}): Promise<Bead> {
    return this.link.connection.post(ITEMS, { title, ...options });
  }

  /** Set fields of an item. With `version`, only that version. */
  update(bead: string, fields: UpdateBead): Promise<Bead> {
    return this.link.connection.patch(addressOf(bead), fields);
  }

  /** Become the holder. Throws `beads.claimed` when another one holds it. */
  claim(bead: string, options: { key?: string } = {}): Promise<Bead> {
    return this.link.connection.post(`${addressOf(bead)}/claim`, options);
  }

  release(bead: string, options: { key?: string } = {}): Promise<Bead> {
    return this.link.connection.post(`${addressOf(bead)}/release`, options);
  }

  close(bead: string, reason: string, options: { evidence?: string; key?: string } = {}): Promise<Bead> {
    return this.link.connection.post(`${addressOf(bead)}/close`, { reason, ...options });
  }

  reopen(bead: string, options: { key?: string } = {}): Promise<Bead> {
    return this.link.connection.post(`${addressOf(bead)}/reopen`, options);
  }

  comment(bead: string, text: string, options: { key?: string } = {}): Promise<Bead> {
    return this.link.connection.post(`${addressOf(bead)}/comments`, { text, ...options });
  }

  /** The item waits until the other one is closed. */
  addNeed(bead: string, needs: string): Promise<Bead> {
    return this.link.connection.post(`${addressOf(bead)}/needs`, { needs });
  }

  removeNeed(bead: string, needs: string): Promise<Bead> {
    return this.link.connection.delete(`${addressOf(bead)}/needs/${encodeURIComponent(needs)}`);
  }

  /** Start a session that works on the item. The token needs the scope `prompt` as well. */
  work(bead: string, options: { agent?: string; model?: string } = {}): Promise<BeadSession> {
    return this.link.connection.post(`${addressOf(bead)}/work`, options);
  }

  /** Every item as a record of beads' own JSON lines. */
  export(): AsyncGenerator<BeadRecords["records"][number]> {
    return allRecords(this.link.connection, "/v1/slots/beads/export");
  }

  /** Store records, at most 200 at once: all of them, or none. */
  importRecords(records: BeadRecords["records"]): Promise<BeadImport> {
    return this.link.connection.post("/v1/slots/beads/import", { records });
  }
}

const addressOf = (bead: string): string => `${ITEMS}/${encodeURIComponent(bead)}`;
