import type { Connection } from "./connection.ts";

type Row = Record<string, unknown>;

/** The records of an export, page by page. */
export async function* allRecords(connection: Connection, path: string): AsyncGenerator<Row> {
  let cursor: string | null = null;
  do {
    const page: { records: Row[]; cursor: string | null } = await connection.get(path, { cursor });
    yield* page.records;
    cursor = page.cursor;
  } while (cursor !== null);
}
