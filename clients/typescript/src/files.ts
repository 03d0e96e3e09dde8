/** The files in the computer: `home.files`. */

import type { FileEntry } from "./api.ts";
import { RequestFailed } from "./connection.ts";
import type { Link } from "./freehold.ts";

const MISSING = ["files.not-found", "files.not-a-folder"];

export class Files {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  /** Whether there is a file or folder; a relative path is below /workspace. Needs the scope `files`. */
  async exists(path: string): Promise<boolean> {
    try {
      await this.link.connection.get<FileEntry>("/v1/files/stat", { path });
    } catch (error) {
      if (error instanceof RequestFailed && MISSING.includes(error.problem.code)) return false;
      throw error;
    }
    return true;
  }
}
