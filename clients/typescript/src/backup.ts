/** Backups: `home.backup`. */

import type { BackupState, BackupStarted, RequestBackup } from "./api.ts";
import type { Link } from "./freehold.ts";

export class Backup {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  /** The last backup, its verification, the state of the recovery key, and what is wrong. */
  get(): Promise<BackupState> {
    return this.link.connection.get("/v1/backup");
  }

  /** Make a backup now, or with `verify` read backups back. Needs the scope `admin`. `get` says when it has ended. */
  start({ work = "now" }: RequestBackup = {}): Promise<BackupStarted> {
    return this.link.connection.post("/v1/backup/runs", { work });
  }
}
