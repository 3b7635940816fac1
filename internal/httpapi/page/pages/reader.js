// What the manual and the API reference do beyond being read.

document.addEventListener("DOMContentLoaded", () => {
  const narrow = matchMedia("(max-width: 56rem)");
  const side = document.querySelector(".side");
  const fold = () => (side.open = !narrow.matches);
  fold();
  narrow.addEventListener("change", fold);
  side.querySelector("[aria-current=page]")?.scrollIntoView({ block: "nearest" });

  // What is wider than the window can be moved with keys as well.
  const reach = new ResizeObserver((all) => {
    for (const { target } of all) {
      if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    }
  });
  for (const wide of document.querySelectorAll(".wide")) reach.observe(wide);

  // Browsers let pages copy over TLS and on the same machine only.
  if (navigator.clipboard) for (const pre of document.querySelectorAll("pre")) pre.append(copier(pre.innerText));
  search(document.getElementById("query"));
  filter(document.getElementById("filter"));

  // A link to an operation shows it open.
  const open = () => document.getElementById(location.hash.slice(1))?.closest("details")?.setAttribute("open", "");
  open();
  addEventListener("hashchange", open);

  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.closest("input")) return;
    event.preventDefault();
    side.open = true;
    side.querySelector("input").focus();
  });
});

function copier(text) {
  const button = document.createElement("button");
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  return button;
}

const wordsOf = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);

/** small are words that say nothing about a page. */
const small = new Set(["a", "an", "the", "of", "to", "in", "on", "for", "and", "or", "is", "do", "i", "how"]);
const asks = (text) => {
  const all = wordsOf(text);
  const kept = all.filter((word) => !small.has(word));
  return kept.length > 0 ? kept : all;
};

/** search looks through all pages; what it looks through is fetched when it is needed first. */
function search(input) {
  if (!input) return;
  const found = document.getElementById("found");
  const article = document.querySelector("article");
  const turn = document.querySelector(".turn");
  let index;
  const show = async () => {
    const asked = asks(input.value);
    found.hidden = asked.length === 0;
    article.hidden = turn.hidden = asked.length > 0;
    document.querySelector(".reader").classList.toggle("searching", asked.length > 0);
    if (asked.length === 0) return;
    index ??= fetch(input.dataset.index).then((answer) => answer.json());
    const all = await index;
    if (String(asked) !== String(asks(input.value))) return; // more was typed meanwhile
    const hits = all
      .map((piece) => ({ piece, worth: worth(piece, asked) }))
      .filter((hit) => hit.worth > 0)
      .sort((a, b) => (a.piece.late ?? 0) - (b.piece.late ?? 0) || b.worth - a.worth);
    const head = document.createElement("h1");
    head.textContent = hits.length === 0 ? "No results" : hits.length === 1 ? "1 result" : `${hits.length} results`;
    found.replaceChildren(head, ...hits.slice(0, 30).map(({ piece }) => result(piece, asked, input.dataset.root)));
  };
  input.addEventListener("input", show);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") found.querySelector("a")?.click();
    if (event.key !== "Escape") return;
    input.value = "";
    show();
  });
  found.addEventListener("click", (event) => {
    if (!event.target.closest("a")) return;
    input.value = ""; // the place may be on this very page
    show();
  });
}

/** worth is how well a piece fits; 0 if a word is missing. Words in its heading and words in a row count most, then how often they occur.
    The beginning of a page has the title as its heading. */
function worth({ title, heading, text }, asked) {
  const [above, head, body] = [title, heading || title, text].map((t) => t.toLowerCase());
  let sum = 0;
  for (const word of asked) {
    const here = (head.includes(word) ? 6 : 0) + (above.includes(word) ? 3 : 0) + Math.min(body.split(word).length - 1, 5) / 2;
    if (here === 0) return 0;
    sum += here;
  }
  const row = asked.join(" ");
  if (asked.length > 1 && [above, head, body].some((t) => t.includes(row))) sum += 4;
  return sum;
}

function result({ path, title, heading, text }, asked, root) {
  const link = document.createElement("a");
  link.href = root + path;
  const name = document.createElement("strong");
  name.textContent = heading ? `${title} · ${heading}` : title;
  const excerpt = document.createElement("span");
  const at = text.toLowerCase().indexOf(asked.find((word) => text.toLowerCase().includes(word)) ?? "");
  const start = at < 60 ? 0 : text.indexOf(" ", at - 60) + 1;
  const piece = (start > 0 ? "… " : "") + text.slice(start, start + 180) + (text.length > start + 180 ? " …" : "");
  const some = new RegExp(`(${asked.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`, "gi");
  for (const [i, part] of piece.split(some).entries()) {
    const mark = i % 2 === 1 ? document.createElement("mark") : document.createTextNode(part);
    if (i % 2 === 1) mark.textContent = part;
    excerpt.append(mark);
  }
  link.append(name, excerpt);
  return link;
}

/** filter leaves the operations that have all words. */
function filter(input) {
  if (!input) return;
  const all = [...document.querySelectorAll("main details")].map((row) => ({ row, text: (row.id + " " + row.querySelector("summary").textContent).toLowerCase() }));
  input.addEventListener("input", () => {
    const asked = wordsOf(input.value);
    let left = 0;
    for (const { row, text } of all) {
      row.hidden = !asked.every((word) => text.includes(word));
      if (!row.hidden) left++;
    }
    for (const part of document.querySelectorAll("main section")) part.hidden = !part.querySelector("details:not([hidden])");
    document.getElementById("found").textContent = asked.length === 0 ? "" : left === 1 ? "1 match" : `${left} matches`;
  });
}
