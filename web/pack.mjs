// Compresses the large files of the page, which only some messages need: the program that holds
// them stays small, and the server sends them as they are stored.
import { readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const folder = join(dirname(fileURLToPath(import.meta.url)), "dist", "ui");
const large = 100_000;

for (const name of await readdir(folder)) {
  const file = join(folder, name);
  if (!name.endsWith(".js") || (await stat(file)).size < large) continue;
  await writeFile(`${file}.gz`, gzipSync(await readFile(file), { level: 9 }));
  await rm(file);
}
