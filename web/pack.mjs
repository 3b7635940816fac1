// Compresses the files of the page and of the manual. This keeps the binary small, and the server sends
// the compressed files as they are stored.
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const dist = join(dirname(fileURLToPath(import.meta.url)), "dist");

for (const folder of ["ui", "manual"]) {
  for (const name of await readdir(join(dist, folder), { recursive: true })) {
    if (!/\.(js|css|html|json|svg)$/.test(name)) continue;
    const file = join(dist, folder, name);
    const text = await readFile(file);
    const packed = gzipSync(text, { level: 9 });
    if (packed.length > 0.9 * text.length) continue;
    await writeFile(`${file}.gz`, packed);
    await rm(file);
  }
}
