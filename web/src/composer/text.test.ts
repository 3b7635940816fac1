import { expect, it } from "vitest";

import { mentionOf, sentText } from "./text";

it.each([
  ["Fix it", "Fix it"],
  ["  if x:\n    y\n\n", "  if x:\n    y"],
  ["\n \n\t\n    indented", "    indented"],
  [" one line ", " one line"],
  ["\r\n  a\r\nb \r\n", "  a\r\nb"],
  [" \n ", ""],
])("sends %j as %j", (text, sent) => expect(sentText(text)).toBe(sent));

it.each([
  ["src/app.ts", "@src/app.ts"],
  ["My Notes/to do.md", '@"My Notes/to do.md"'],
  ['say "hi".txt', '@"say \\"hi\\".txt"'],
  ["a(1).txt", '@"a(1).txt"'],
  ["日本語.md", "@日本語.md"],
])("mentions %s as %s", (path, mention) => expect(mentionOf(path)).toBe(mention));
