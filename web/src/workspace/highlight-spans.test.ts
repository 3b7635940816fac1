import hljs from "highlight.js/lib/core";
import go from "highlight.js/lib/languages/go";
import { expect, it } from "vitest";

import { spans } from "./highlight-spans";

it("finds places by the text, not by the HTML", () => {
  expect(spans('a &lt; <span class="x">b &amp;&amp; c</span>d')).toEqual([{ from: 4, to: 10, style: "x" }]);
});

it("puts outer places before inner ones", () => {
  expect(spans('<span class="a">1<span class="b">2</span>3</span>')).toEqual([
    { from: 0, to: 3, style: "a" },
    { from: 1, to: 2, style: "b" },
  ]);
});

it("leaves out what is empty, and lives with what does not close", () => {
  expect(spans('<span class="a"></span>x')).toEqual([]);
  expect(spans('</span>x<span class="a">y')).toEqual([]);
});

it("agrees with the highlighter about where things are", () => {
  hljs.registerLanguage("go", go);
  const code = 'package main\n\n// a < b && "c" \'d\' 🦀\nfunc main() { x := "é&<>" }\n';
  const found = spans(hljs.highlight(code, { language: "go" }).value).map((s) => [s.style, code.slice(s.from, s.to)]);
  expect(found).toContainEqual(["hljs-comment", "// a < b && \"c\" 'd' 🦀"]);
  expect(found).toContainEqual(["hljs-string", '"é&<>"']);
  expect(found).toContainEqual(["hljs-title", "main"]);
});
