/** Personal data: `home.pods`. */

import type {
  DeletedDocument,
  Document,
  PodAccesses,
  PodGrant,
  PodGrants,
  PodImport,
  PodPage,
  PodRecords,
} from "./api.ts";
import { RequestFailed } from "./connection.ts";
import type { Link } from "./freehold.ts";
import { allRecords } from "./records.ts";

const PODS = "/v1/slots/pods";

export interface DocumentBytes {
  path: string;
  media: string;
  etag: string | null;
  content: Uint8Array<ArrayBuffer>;
}

export interface WriteOptions {
  media?: string;
  /** Write only over the version with this tag. */
  ifMatch?: string;
  /** Write only if there is no such document yet. */
  isNew?: boolean;
  key?: string;
}

/** The token needs the scope `pods`; grants are read with it, and changed with the scope `admin`. */
export class Pods {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  /** What is in a folder; with `media`, such as `image/*`, all documents of this type below it. */
  list(folder = "", options: { media?: string; limit?: number; cursor?: string } = {}): Promise<PodPage> {
    return this.link.connection.get(`${PODS}/list`, { folder, limit: 100, ...options });
  }

  async read(path: string): Promise<DocumentBytes> {
    const response = await this.link.connection.send(addressOf(path));
    const { headers } = response;
    const content = new Uint8Array(await response.arrayBuffer());
    return { path, media: headers.get("content-type") ?? "", etag: headers.get("etag"), content };
  }

  /** Write a whole document. Throws `pods.conflict` when a condition does not hold. */
  write(
    path: string,
    content: Uint8Array<ArrayBuffer> | string,
    { media = "text/plain", ifMatch, isNew = false, key }: WriteOptions = {},
  ): Promise<Document> {
    return this.upload("PUT", path, content, {
      "content-type": media,
      "if-match": ifMatch,
      "if-none-match": isNew ? "*" : undefined,
      "idempotency-key": key,
    });
  }

  /** Change a part of a document: by JSON Patch, or by N3 Patch where a Solid server keeps it. */
  patch(
    path: string,
    operations: string,
    { ifMatch, n3 = false }: { ifMatch?: string; n3?: boolean } = {},
  ): Promise<Document> {
    const media = n3 ? "text/n3" : "application/json-patch+json";
    return this.upload("PATCH", path, operations, { "content-type": media, "if-match": ifMatch });
  }

  createFolder(folder: string): Promise<Document> {
    return this.upload("PUT", `${folder.replace(/\/$/, "")}/`, new Uint8Array(), {});
  }

  /** A document, or an empty folder. */
  async delete(path: string): Promise<void> {
    await this.link.connection.delete<DeletedDocument>(addressOf(path));
  }

  async grants(agent: string | null = null): Promise<PodGrant[]> {
    return (await this.link.connection.get<PodGrants>(`${PODS}/grants`, { agent })).grants;
  }

  /** Let an agent reach a folder. Returns its grants. */
  async grant(agent: string, folder: string, mode: PodGrant["mode"] = "read"): Promise<PodGrant[]> {
    return (await this.link.connection.post<PodGrants>(`${PODS}/grants`, { agent, folder, mode })).grants;
  }

  async revoke(agent: string, folder: string): Promise<PodGrant[]> {
    return (await this.link.connection.post<PodGrants>(`${PODS}/grants/revoke`, { agent, folder })).grants;
  }

  /** Who reached what, the newest first. */
  access(options: { folder?: string; agent?: string; limit?: number; before?: number } = {}): Promise<PodAccesses> {
    return this.link.connection.get(`${PODS}/access`, { limit: 100, ...options });
  }

  export(): AsyncGenerator<PodRecords["records"][number]> {
    return allRecords(this.link.connection, `${PODS}/export`);
  }

  /** Store records of an export, at most 20 at once. */
  importRecords(records: PodRecords["records"]): Promise<PodImport> {
    return this.link.connection.post(`${PODS}/import`, { records });
  }

  private async upload(
    method: string,
    path: string,
    body: Uint8Array<ArrayBuffer> | string,
    headers: Record<string, string | undefined>,
  ): Promise<Document> {
    const given = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));
    const response = await this.link.connection.send(addressOf(path), {
      method,
      body,
      headers: given as Record<string, string>,
    });
    return (await response.json()) as Document;
  }
}

/** An address in which `..` goes up would be another address of the API. */
function addressOf(path: string): string {
  const names = path.split("/");
  if (names.includes(".") || names.includes(".."))
    throw new RequestFailed(400, {
      code: "pods.invalid",
      message: `${path} is not a path: no part of it is . or ..`,
      hint: "Give the path from the root of the pod.",
    });
  return `${PODS}/data/${names.map(encodeURIComponent).join("/")}`;
}
