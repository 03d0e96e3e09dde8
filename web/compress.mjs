/**
 * Writes a copy by Brotli beside each large built file, an eighth smaller than by gzip. A first visit is mostly this.
 *
 *   node web/compress.mjs DIST
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";

const folder = join(resolve(process.argv[2] ?? "dist"), "assets");
for (const name of readdirSync(folder)) {
  const bytes = readFileSync(join(folder, name));
  if (bytes.length < 1024 || !/\.(js|mjs|css)$/.test(name)) continue;
  const params = { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  writeFileSync(join(folder, `${name}.br`), brotliCompressSync(bytes, { params }));
}
