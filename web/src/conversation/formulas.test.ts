import { describe, expect, it } from "vitest";

import { read } from "./markdown-html";

describe("formulas", () => {
  const math = (tex: string) => `<code class="language-math">${tex}</code>`;
  it.each([
    ["so $a_1 + b_2$ is", `<p>so ${math("a_1 + b_2")} is</p>\n`],
    ["so \\(a*b*c\\) is", `<p>so ${math("a*b*c")} is</p>\n`],
    ["$$\nx^2\n$$", `<pre>${math("x^2")}</pre>\n`],
    ["\\[ x < y \\]", `<pre>${math("x &#60; y")}</pre>\n`],
  ])("finds %j", (source, want) => expect(read(source)).toBe(want));
  it.each(["It costs $5 and $10.", "$HOME and $PATH", "a $ b $ c", "`$x$`", "$ x$"])("leaves %s alone", (source) =>
    expect(read(source)).not.toContain("language-math"),
  );
  it.each(["$", "$$", "\\(", "\\[", "$a ", "\n$$"])("is not slow with many of %j", (unit) => {
    const from = performance.now();
    read(unit.repeat(Math.ceil(100_000 / unit.length)));
    expect(performance.now() - from).toBeLessThan(20_000);
  });
});
