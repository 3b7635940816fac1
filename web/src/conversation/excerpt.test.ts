import { describe, expect, test } from "vitest";

import { excerpt } from "./excerpt";

const numbered = (n: number) => Array.from({ length: n }, (_, i) => `line ${i}`).join("\n");

describe("an excerpt", () => {
  test.each(["", "short", numbered(300)])("of what is short is all of it", (text) =>
    expect(excerpt(text, false)).toEqual({ text, hidden: 0 }),
  );

  test("of many lines is the beginning, or the end", () => {
    const head = excerpt(numbered(1000), false);
    expect([head.hidden, head.text.split("\n")[0], head.text.split("\n").at(-1)]).toEqual([700, "line 0", "line 299"]);
    const tail = excerpt(numbered(1000), true);
    expect([tail.hidden, tail.text.split("\n")[0], tail.text.split("\n").at(-1)]).toEqual([700, "line 700", "line 999"]);
  });

  test("of long lines has whole lines", () => {
    const long = ["a".repeat(9000), "b".repeat(9000), "c"].join("\n");
    expect(excerpt(long, false)).toEqual({ text: "a".repeat(9000), hidden: 2 });
  });

  test("of a line that is too long is a part of it", () => {
    expect(excerpt("a" + "x".repeat(50_000), false)).toEqual({ text: "a" + "x".repeat(11_999), hidden: 1 });
    expect(excerpt("x".repeat(50_000) + "z", true)).toEqual({ text: "x".repeat(11_999) + "z", hidden: 1 });
    expect(excerpt("x".repeat(50_000) + "\nb\nc", false)).toEqual({ text: "x".repeat(12_000), hidden: 3 });
  });
});
