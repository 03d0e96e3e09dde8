/** The files in the computer: `home.files`. */

import type { ChangedPath, FileEntry, FileList, FileSearchResult, FileTree, WrittenFile } from "./api.ts";
import { addQuery, RequestFailed } from "./connection.ts";
import type { Link } from "./freehold.ts";

const CONTENT = "/v1/files/content";
const MISSING = ["files.not-found", "files.not-a-folder"];

/** The bytes of a file. `write` with its `etag` refuses to replace what others wrote since. */
export interface FileContent {
  content: Uint8Array<ArrayBuffer>;
  etag: string;
}

export interface SearchOptions {
  regex?: boolean;
  ignoreCase?: boolean;
  /** Also folders of git and package managers. */
  all?: boolean;
  limit?: number;
}

/** A relative path is below /workspace. The token needs the scope `files`. */
export class Files {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  /** Whether there is a file or folder. */
  async exists(path: string): Promise<boolean> {
    try {
      await this.stat(path);
    } catch (error) {
      if (error instanceof RequestFailed && MISSING.includes(error.problem.code)) return false;
      throw error;
    }
    return true;
  }

  /** One file or folder. A link is followed inside the computer only. */
  stat(path: string): Promise<FileEntry> {
    return this.link.connection.get("/v1/files/stat", { path });
  }

  /** One page of the contents of a folder, by name. */
  list(path = ".", { after = "", limit = 1000 }: { after?: string; limit?: number } = {}): Promise<FileList> {
    return this.link.connection.get("/v1/files/list", { path, after, limit });
  }

  /** Everything below a folder. Without `all`, folders of git and package managers are skipped. */
  tree(path = ".", { all = false }: { all?: boolean } = {}): Promise<FileTree> {
    return this.link.connection.get("/v1/files/tree", { path, all });
  }

  /** Lines of text files that contain the query. */
  search(
    query: string,
    path = ".",
    { regex = false, ignoreCase = true, all = false, limit = 500 }: SearchOptions = {},
  ): Promise<FileSearchResult> {
    const options = { regex, ignore_case: ignoreCase, all, limit };
    return this.link.connection.get("/v1/files/search", { query, path, ...options });
  }

  /** The bytes of a file. */
  async read(path: string): Promise<FileContent> {
    const response = await this.link.connection.send(addQuery(CONTENT, { path }));
    const content = new Uint8Array(await response.arrayBuffer());
    return { content, etag: response.headers.get("etag") ?? "" };
  }

  /** Write a whole file. With `ifMatch`, only when it still has that etag; with `isNew`, only when it is new. */
  async write(
    path: string,
    content: Uint8Array<ArrayBuffer> | string,
    { ifMatch, isNew = false }: { ifMatch?: string; isNew?: boolean } = {},
  ): Promise<WrittenFile> {
    const response = await this.link.connection.send(addQuery(CONTENT, { path }), {
      method: "PUT",
      body: content,
      headers: {
        ...(ifMatch === undefined ? {} : { "if-match": ifMatch }),
        ...(isNew ? { "if-none-match": "*" } : {}),
      },
    });
    return (await response.json()) as WrittenFile;
  }

  /** Create a folder and its missing parents. */
  createFolder(path: string): Promise<ChangedPath> {
    return this.link.connection.post("/v1/files/folder", { path });
  }

  /** Rename or move a file or folder. */
  move(path: string, to: string, { replace = false }: { replace?: boolean } = {}): Promise<ChangedPath> {
    return this.link.connection.post("/v1/files/move", { path, to, replace });
  }

  /** Copy a file, or a folder with its contents. */
  copy(path: string, to: string, { replace = false }: { replace?: boolean } = {}): Promise<ChangedPath> {
    return this.link.connection.post("/v1/files/copy", { path, to, replace });
  }

  /** Remove a file or folder. Undo brings it back. */
  remove(path: string, { recursive = false }: { recursive?: boolean } = {}): Promise<ChangedPath> {
    return this.link.connection.post("/v1/files/remove", { path, recursive });
  }
}
