import { describe, expect, test } from "vitest";

import { compare, sum, unified } from "./diff";

const shown = (rows: ReturnType<typeof compare>) => rows.map((r) => ({ same: " ", added: "+", removed: "-", gap: "@" })[r.kind] + r.text);

describe("a unified diff", () => {
  const diff =
    "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n" +
    "@@ -10 +10,2 @@ func f()\n ten\n+--- not a header\n\\ No newline at end of file\n";

  test("is read with line numbers", () => {
    expect(shown(unified(diff))).toEqual([" one", "-two", "+zwei", " three", "@func f()", " ten", "+--- not a header"]);
    expect(unified(diff).map((r) => [r.old, r.new])).toEqual([
      [1, 1],
      [2, undefined],
      [undefined, 2],
      [3, 3],
      [undefined, undefined],
      [10, 10],
      [undefined, 11],
    ]);
    expect(sum(unified(diff))).toEqual({ added: 2, removed: 1 });
  });

  test.each(["", "nonsense", "@@ -1 +1 @@"])("is nothing of %j", (text) => expect(unified(text)).toEqual([]));
});

describe("two texts", () => {
  test.each([
    ["equal", "a\nb\n", "a\nb\n", []],
    ["made", "", "a\nb\n", ["+a", "+b"]],
    ["emptied", "a\n", "", ["-a"]],
    ["changed within", "a\nb\nc\n", "a\nB\nc\n", [" a", "-b", "+B", " c"]],
    ["moved", "a\nb\nc\n", "b\nc\na\n", ["-a", " b", " c", "+a"]],
  ])("%s", (_, before, after, want) => expect(shown(compare(before, after))).toEqual(want));

  test("leave out what is far from a change", () => {
    const lines = Array.from({ length: 30 }, (_, i) => `l${i}`);
    const other = lines.map((l, i) => (i === 5 || i === 25 ? `${l}!` : l));
    const rows = compare(lines.join("\n"), other.join("\n"));
    expect(shown(rows)).toEqual([
      " l2",
      " l3",
      " l4",
      "-l5",
      "+l5!",
      " l6",
      " l7",
      " l8",
      "@",
      " l22",
      " l23",
      " l24",
      "-l25",
      "+l25!",
      " l26",
      " l27",
      " l28",
    ]);
    expect(rows.find((r) => r.text === "l25!")?.new).toBe(26);
  });

  test("that are long and different are told as replaced", () => {
    const many = (c: string) => Array.from({ length: 2000 }, (_, i) => c + i).join("\n");
    expect(sum(compare(many("a"), many("b")))).toEqual({ added: 2000, removed: 2000 });
  });
});
