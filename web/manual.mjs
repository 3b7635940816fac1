// Makes the documentation a site: docs/*.md and the texts beside them become pieces of
// HTML in dist/manual, which the server puts into a frame. A link that leads nowhere is
// an error here, so that it is found when the page is built.
import { cp, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";

import { Marked } from "marked";

const web = dirname(fileURLToPath(import.meta.url));
const root = dirname(web);
const out = join(web, "dist", "manual");

/** Texts outside docs/ that belong to the manual, by their address in it. */
const beside = { "README.md": "readme", "CONTRIBUTING.md": "contributing", "CHANGELOG.md": "changelog" };

/** An address in the manual for a file of the repository; "" is the first page. */
const addressOf = (file) => beside[file] ?? (file === "docs/README.md" ? "" : file.replace(/^docs\//, "").replace(/\.md$/, ""));

const slug = (text) =>
  text
    .toLowerCase()
    .replace(/<[^>]+>|&[a-z]+;/g, "")
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replace(/\s/g, "-");

/** from is how one page writes the address of another. */
function from(here, there) {
  const way = posix.relative(posix.dirname("/" + here), "/" + there);
  return way === "" || way === "." ? "./" : there === "" ? way + "/" : way;
}

const exists = (file) => stat(join(root, file)).then(() => true, () => false);

async function files() {
  const docs = (await readdir(join(root, "docs"), { recursive: true })).filter((f) => f.endsWith(".md")).map((f) => "docs/" + f.split("\\").join("/"));
  return [...Object.keys(beside), ...docs].sort();
}

/** page renders a file; links are looked after when all pages are there. */
async function page(file) {
  const anchors = new Set();
  const links = [];
  const pictures = [];
  const unique = (text) => {
    let id = slug(text);
    for (let n = 1; anchors.has(id); n++) id = `${slug(text)}-${n}`;
    anchors.add(id);
    return id;
  };
  const here = addressOf(file);
  const target = (href) => posix.normalize(posix.join(posix.dirname(file), href));
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text }) {
        const id = unique(text);
        return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      link({ href, tokens }) {
        const words = this.parser.parseInline(tokens);
        if (/^https?:/.test(href)) return `<a href="${href}" rel="noreferrer">${words}</a>`;
        const [path = "", anchor] = href.split("#");
        const to = path === "" ? file : target(path);
        links.push({ to, anchor, href });
        if (!to.endsWith(".md")) return words; // a file of the repository, which is not here
        return `<a href="${path === "" ? "" : from(here, addressOf(to))}${anchor ? "#" + anchor : ""}">${words}</a>`;
      },
      image({ href, text }) {
        const to = target(href);
        pictures.push(to);
        return `<img src="${from(here, "pictures/" + posix.basename(to))}" alt="${text}" loading="lazy">`;
      },
    },
  });
  const text = await readFile(join(root, file), "utf8");
  const body = await marked.parse(text);
  const title = /^# (.+)$/m.exec(text)?.[1]?.replace(/`/g, "") ?? file;
  return { file, here, title, body, anchors, links, pictures };
}

const pages = await Promise.all((await files()).map(page));
const byFile = new Map(pages.map((p) => [p.file, p]));
const broken = [];
for (const p of pages) {
  for (const { to, anchor, href } of p.links) {
    const found = byFile.get(to);
    if (!(found || (!to.endsWith(".md") && (await exists(to)))) || (anchor && found && !found.anchors.has(anchor))) broken.push(`${p.file}: ${href}`);
  }
  for (const picture of p.pictures) if (!(await exists(picture))) broken.push(`${p.file}: ${picture}`);
}
if (broken.length > 0) throw new Error(`links that lead nowhere:\n${broken.join("\n")}`);

for (const p of pages) {
  const file = join(out, (p.here || "index") + ".html");
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, p.body);
}
await mkdir(join(out, "pictures"), { recursive: true });
for (const picture of new Set(pages.flatMap((p) => p.pictures))) await cp(join(root, picture), join(out, "pictures", posix.basename(picture)));

// The order is that of the first page, which names the others; decisions come last.
const order = [...byFile.get("docs/README.md").links.map((l) => l.to)];
const rank = (p) => (p.here === "" ? -1 : order.includes(p.file) ? order.indexOf(p.file) : order.length);
const contents = pages.sort((a, b) => rank(a) - rank(b)).map(({ here, title }) => ({ path: here, title }));
await writeFile(join(out, "contents.json"), JSON.stringify(contents));
