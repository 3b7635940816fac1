// Makes the documentation a site: docs/*.md and the texts beside them become pieces of
// HTML in dist/manual, which the server puts into a frame. A link that leads nowhere, and
// a page to which none leads, are errors here, so that they are found when it is built.
import { cp, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";

import hljs from "highlight.js/lib/common";
import { Marked } from "marked";

const web = dirname(fileURLToPath(import.meta.url));
const root = dirname(web);
const out = join(web, "dist", "manual");

/** Texts outside docs/ that belong to the manual, by their address in it. */
const beside = { "README.md": "readme", "CONTRIBUTING.md": "contributing", "CHANGELOG.md": "changelog" };
const first = "docs/README.md";

/** The index of a folder names the pages in it. They are not in the menu: the index stands for them. */
const indexOf = (file) => (file.startsWith("docs/decisions/") && file !== "docs/decisions/README.md" ? "docs/decisions/README.md" : first);

/** An address in the manual for a file of the repository; "" is the first page. */
const addressOf = (file) => beside[file] ?? (file === first ? "" : file.replace(/^docs\//, "").replace(/(\/README)?\.md$/, ""));

/** Examples to copy are files of the manual, too. */
const isExample = (file) => /^(examples|packaging\/monitoring)\/.*\.(json|yml)$/.test(file);
const exampleAddress = (file) => "files/" + posix.basename(file);

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
  if (way === "" && there !== "") return "../" + posix.basename(there); // the index of the folder that this page is in
  return way === "" || way === "." ? "./" : there === "" ? way + "/" : way;
}

const exists = (file) =>
  stat(join(root, file)).then(
    () => true,
    () => false,
  );

async function files() {
  const docs = (await readdir(join(root, "docs"), { recursive: true }))
    .filter((f) => f.endsWith(".md"))
    .map((f) => "docs/" + f.split("\\").join("/"));
  return [...Object.keys(beside), ...docs].sort();
}

const escaped = (text) => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

/** words is a piece of HTML without what is not read. */
const words = (html) =>
  html
    .replace(/<a class="here"[^>]*>#<\/a>/g, "")
    .replace(/<[^>]+>/g, " ")
    .replace(/&(lt|gt|quot|amp|#39|#x27);/g, (_, c) => ({ lt: "<", gt: ">", quot: '"', amp: "&" })[c] ?? "'")
    .replace(/\s+/g, " ")
    .trim();

/** page renders a file; links are looked after when all pages are there. */
async function page(file) {
  const anchors = new Set();
  const links = [];
  const pictures = [];
  const sections = [];
  let part = "";
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
        const inside = this.parser.parseInline(tokens);
        if (depth === 1) return `<h1 id="${id}">${inside}</h1>\n`;
        if (depth === 2) sections.push({ id, title: (part = words(inside)) });
        const link = `<a class="here" href="#${id}" aria-label="Link to ${escaped(words(inside))}">#</a>`;
        return `<h${depth} id="${id}">${inside} ${link}</h${depth}>\n`;
      },
      code({ text, lang }) {
        const known = lang && hljs.getLanguage(lang);
        return `<pre><code>${known ? hljs.highlight(text, { language: lang, ignoreIllegals: true }).value : escaped(text)}</code></pre>\n`;
      },
      table(token) {
        const row = (cells, tag) => `<tr>${cells.map((c) => `<${tag}>${this.parser.parseInline(c.tokens)}</${tag}>`).join("")}</tr>`;
        const head = row(token.header, "th");
        const rows = token.rows.map((r) => row(r, "td")).join("\n");
        return `<div class="wide"><table><thead>${head}</thead><tbody>${rows}</tbody></table></div>\n`;
      },
      link({ href, tokens }) {
        const inside = this.parser.parseInline(tokens);
        if (/^https?:/.test(href)) return `<a href="${href}" rel="noreferrer">${inside}</a>`;
        const [path = "", anchor] = href.split("#");
        const to = path === "" ? file : target(path);
        links.push({ to, anchor, href, part });
        if (isExample(to)) return `<a href="${from(here, exampleAddress(to))}">${inside}</a>`;
        if (!to.endsWith(".md")) return inside; // a file of the repository, which is not here
        return `<a href="${path === "" ? "" : from(here, addressOf(to))}${anchor ? "#" + anchor : ""}">${inside}</a>`;
      },
      image({ href, text }) {
        const to = target(href);
        pictures.push(to);
        return `<img src="${from(here, "pictures/" + posix.basename(to))}" alt="${escaped(text)}" loading="lazy">`;
      },
    },
  });
  const text = await readFile(join(root, file), "utf8");
  const body = await marked.parse(text);
  const title = /^# (.+)$/m.exec(text)?.[1]?.replace(/`/g, "") ?? file;
  return { file, here, title, body, anchors, links, pictures, sections };
}

const pages = await Promise.all((await files()).map(page));
const byFile = new Map(pages.map((p) => [p.file, p]));
// The first page names all others, in the order to read them, below the parts of the manual.
const index = byFile.get(first).links.filter((l) => byFile.has(l.to));
const named = (p) => byFile.get(indexOf(p.file)).links.some((l) => l.to === p.file);
const broken = pages.filter((p) => p.file !== first && !named(p)).map((p) => `${indexOf(p.file)} does not name ${p.file}`);
for (const p of pages) {
  for (const { to, anchor, href } of p.links) {
    const found = byFile.get(to);
    if (!(found || (!to.endsWith(".md") && (await exists(to)))) || (anchor && found && !found.anchors.has(anchor)))
      broken.push(`${p.file}: ${href}`);
  }
  for (const picture of p.pictures) if (!(await exists(picture))) broken.push(`${p.file}: ${picture}`);
}
if (broken.length > 0) throw new Error(`links that lead nowhere, or are missing:\n${broken.join("\n")}`);

/** late marks pages about the past of Deckhand, which a search lists after all others. */
const late = ({ file }) => file === "CHANGELOG.md" || file.startsWith("docs/decisions/");

/** found is what a search looks through: the sections of a page, by their headings. */
function found(p) {
  const { here, title, body } = p;
  return body.split(/(?=<h[234] id=)/).map((piece) => {
    const [, id, heading] = /^<h[234] id="([^"]*)">(.*?)<\/h[234]>/s.exec(piece) ?? [];
    return {
      path: here + (id ? "#" + id : ""),
      title,
      heading: heading ? words(heading) : "",
      text: words(piece.replace(/^<h\d[^>]*>.*?<\/h\d>/s, "")),
      ...(late(p) && { late: 1 }),
    };
  });
}

for (const p of pages) {
  const file = join(out, (p.here || "index") + ".html");
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, p.body);
}
await mkdir(join(out, "pictures"), { recursive: true });
for (const picture of new Set(pages.flatMap((p) => p.pictures)))
  await cp(join(root, picture), join(out, "pictures", posix.basename(picture)));

await mkdir(join(out, "files"), { recursive: true });
for (const example of new Set(pages.flatMap((p) => p.links.map((l) => l.to).filter(isExample))))
  await cp(join(root, example), join(out, exampleAddress(example)));

const entry = (p) => (indexOf(p.file) === first ? p : byFile.get(indexOf(p.file)));
const rank = (p) => index.findIndex((l) => l.to === entry(p).file);
pages.sort((a, b) => rank(a) - rank(b) || (entry(a) === a ? -1 : entry(b) === b ? 1 : a.file.localeCompare(b.file)));
const contents = pages.map((p) => ({
  path: p.here,
  title: p.title,
  part: index[rank(p)]?.part ?? "",
  sections: p.sections,
  ...(entry(p) !== p && { within: entry(p).here }),
}));
await writeFile(join(out, "contents.json"), JSON.stringify(contents));
await writeFile(join(out, "search.json"), JSON.stringify(pages.flatMap(found)));
