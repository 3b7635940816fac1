// Markdown as safe HTML. What a model or a web page wrote is never trusted: no script, no
// style, none of the page's classes or ids, no form, and nothing that loads from elsewhere by itself.
import DOMPurify from "dompurify";

import { t } from "../lib/i18n.svelte";
import { read } from "./markdown-html";

const purifier = DOMPurify();

purifier.addHook("afterSanitizeAttributes", (node) => {
  const language = /(?:^|\s)language-([\w+#-]+)/.exec(node.getAttribute("class") ?? "")?.[1];
  node.removeAttribute("class");
  if (node.tagName === "CODE" && language) node.setAttribute("data-language", language.toLowerCase());
  if (node.tagName === "LI" && /^[☑☐] /.test(node.textContent)) node.setAttribute("data-task", "");
  if (node.tagName === "A") {
    node.setAttribute("target", "_blank");
    node.setAttribute("rel", "noopener noreferrer");
  }
  if (node.tagName === "IMG" && !/^data:image\//i.test(node.getAttribute("src") ?? "")) replaceImage(node);
});

/** replaceImage makes a link of an image from elsewhere: looking at it is the person's choice. */
function replaceImage(image: Element): void {
  const link = image.ownerDocument.createElement("a");
  const source = image.getAttribute("src") ?? "";
  link.textContent = `${t("conversation.image")}: ${image.getAttribute("alt") || source}`;
  if (/^https?:/i.test(source)) {
    link.setAttribute("href", source);
    link.setAttribute("title", source);
    link.setAttribute("target", "_blank");
    link.setAttribute("rel", "noopener noreferrer");
  }
  image.removeAttribute("src");
  // Within a link, the words take its place: links do not nest.
  if (image.parentElement?.closest("a")) image.replaceWith(link.textContent);
  else image.replaceWith(link);
}

const rules = {
  USE_PROFILES: { html: true },
  FORBID_TAGS: [
    "style",
    "form",
    "input",
    "button",
    "select",
    "textarea",
    "option",
    "video",
    "audio",
    "picture",
    "source",
    "track",
    "map",
    "area",
    "dialog",
  ],
  FORBID_ATTR: ["style", "id", "name", "srcset", "background", "poster", "tabindex", "role", "accesskey", "contenteditable", "autofocus"],
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|data:image\/(?:png|jpeg|gif|webp);|#)/i,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
};

const longest = 200_000;

/** What was rendered last is likely to be shown again: it was only scrolled away. */
const rendered = new Map<string, string>();
const remembered = 200;
const small = 20_000;

/** html renders markdown. What is too long to be read is cut: it is in the trajectory. */
export function html(source: string): string {
  const known = rendered.get(source);
  if (known !== undefined) return known;
  const cut = source.length > longest ? source.slice(0, longest) + "…" : source;
  const safe = purifier.sanitize(read(cut), rules);
  if (source.length <= small) {
    if (rendered.size >= remembered) rendered.delete(rendered.keys().next().value!);
    rendered.set(source, safe);
  }
  return safe;
}
