import { describe, expect, test } from "vitest";

import { read } from "./markdown-html";

describe("markdown", () => {
  test.each([
    ["**a** _b_ `c`", "<p><strong>a</strong> <em>b</em> <code>c</code></p>\n"],
    ["> > a", "<blockquote>\n<blockquote>\n<p>a</p>\n</blockquote>\n</blockquote>\n"],
    ["- a\n  - b", "<ul>\n<li>a<ul>\n<li>b</li>\n</ul>\n</li>\n</ul>\n"],
    ["a <!-- b --> c <b onclick=x>d</b> <script>", "<p>a  c <b>d</b> &lt;script&gt;</p>\n"],
  ])("%j", (source, want) => expect(read(source)).toBe(want));
});

// Each of these took minutes, or more stack than there is.
describe("a text that is made to be read forever is read all the same", () => {
  const units = [
    "a_",
    "_a_",
    "**a",
    "*a ",
    "<!--",
    "<!-- -",
    "> ",
    "> > ",
    "1. ",
    "- ",
    "> - ",
    ">\t",
    "<",
    "[",
    "![",
    "[a](<",
    "`",
    "~a~",
    "|",
    "\\",
  ];
  test.each(units)("%j", (unit) => {
    const source = unit.repeat(Math.ceil(200_000 / unit.length));
    expect(read(source).length).toBeGreaterThan(0);
  });
});
