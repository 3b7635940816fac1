// Where formulas are in Markdown: $$…$$ and \[…\] in lines of their own, \(…\) and $…$ within a line. They
// become code in the language math, which the page draws later.
import type { TokenizerAndRendererExtension } from "marked";

const escaped = (text: string) => text.replace(/[&<>]/g, (c) => `&#${c.charCodeAt(0)};`);
const code = (tex: string) => `<code class="language-math">${escaped(tex)}</code>`;

// Lengths are bounded: no text may make the search long.
const block = /^(?:\$\$([\s\S]{1,4000}?)\$\$|\\\[([\s\S]{1,4000}?)\\\])[ \t]*(?:\n|$)/;
// As in Pandoc: $5 and $10 are prices. No space behind the first sign, none before the last, no digit behind it.
const inline = /^(?:\\\(([\s\S]{1,600}?)\\\)|\$\$([^$\n]{1,600}?)\$\$|\$(?![\s$])([^$\n]{0,600}?[^\s$\\])\$(?!\d))/;

export const formulas: TokenizerAndRendererExtension[] = [
  {
    name: "math-block",
    level: "block",
    start: (source) => first(source, /\n(?:\$\$|\\\[)/),
    tokenizer(source) {
      const found = block.exec(source);
      return found ? { type: "math-block", raw: found[0], text: (found[1] ?? found[2])!.trim() } : undefined;
    },
    renderer: (token) => `<pre>${code(token.text)}</pre>\n`,
  },
  {
    name: "math-inline",
    level: "inline",
    start: (source) => first(source, /\$|\\\(/),
    tokenizer(source) {
      const found = inline.exec(source);
      return found ? { type: "math-inline", raw: found[0], text: (found[1] ?? found[2] ?? found[3])!.trim() } : undefined;
    },
    renderer: (token) => code(token.text),
  },
];

function first(source: string, form: RegExp): number | undefined {
  const at = source.search(form);
  return at < 0 ? undefined : source[at] === "\n" ? at + 1 : at;
}
