import { expect, test } from "vitest";

import { revealed } from "./unseen-characters";

test.each([
  ["ls -la\n\tpwd", ["ls -la\n\tpwd"]],
  ["a\u202eb", ["a", "U+202E", "b"]],
  ["\rrm\u200b", ["", "U+000D", "rm", "U+200B", ""]],
  ["\u{e0041}", ["", "U+E0041", ""]],
])("%j is shown as %j", (text, want) => expect(revealed(text)).toEqual(want));
