// Markdown as HTML that is yet to be made safe (see markdown.ts). It comes from strangers too,
// so no text may take forever, or break the page.
import { Lexer, Marked, type Token } from "marked";

import { formulas } from "./formulas";

/** Tags that people write into markdown, and that only shape text. */
const shapes =
  "b|br|code|dd|del|details|div|dl|dt|em|h[1-6]|hr|i|ins|kbd|li|mark|ol|p|pre|s|samp|small|span|strong|sub|summary|sup|" +
  "table|tbody|td|th|thead|tr|u|ul|var";
// A comment has no other in it: so one that never ends is not looked through again and again.
const written = new RegExp(`<!--(?:(?!<!--)[\\s\\S])*?-->|<(/?)(${shapes})(?=[\\s/>])[^<>]*>|[<>]`, "gi");

/**
 * bare keeps such tags without their attributes and shows all others as the text they are.
 * The sanitiser would drop them too, but parsing them is enough for a browser to report
 * styles and handlers that the page's policy forbids.
 */
export function bare(html: string): string {
  return html.replace(written, (whole, slash: string | undefined, tag: string | undefined) => {
    if (tag) return `<${slash}${tag.toLowerCase()}>`;
    return whole === "<" ? "&lt;" : whole === ">" ? "&gt;" : "";
  });
}

// Some generated texts take the Markdown parser minutes, or overflow its stack: a paragraph
// full of opening marks, each of which is searched for its end, and deeply nested quotes and
// lists. Both are shown as plain text.
const mostLooking = 10_000_000;
const deep = /^(?:[ \t]{0,3}(?:>|(?:[*+-]|\d{1,9}[.)])(?=\s))[ \t]{0,3}){20}/;

class Careful extends Lexer {
  override inlineTokens(source: string, tokens: Token[] = []): Token[] {
    const beginnings = source.length > 3000 ? (source.match(/[*_~[<`$\\]/g)?.length ?? 0) : 0;
    if (beginnings * source.length <= mostLooking) return super.inlineTokens(source, tokens);
    tokens.push({ type: "text", raw: source, text: source, escaped: false });
    return tokens;
  }
}

const marked = new Marked({
  extensions: formulas,
  gfm: true,
  breaks: true,
  hooks: { provideLexer: () => (source, options) => new Careful(options as never).lex(source) },
  tokenizer: {
    blockquote: (rest) => (deep.test(rest) ? undefined : false),
    list: (rest) => (deep.test(rest) ? undefined : false),
  },
  renderer: {
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
    html: ({ text }) => bare(text),
  },
});

const escaped = (text: string) => text.replace(/[&<>]/g, (c) => `&#${c.charCodeAt(0)};`);

/** read is HTML that is yet to be made safe. A text that cannot be read as markdown is still a text. */
export function read(source: string): string {
  try {
    return marked.parse(source, { async: false });
  } catch {
    return `<p>${escaped(source).replaceAll("\n", "<br>")}</p>`;
  }
}
