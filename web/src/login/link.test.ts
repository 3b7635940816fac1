import { describe, expect, test } from "vitest";

import { preferredLanguage, ticketOf } from "./link";

describe("ticketOf", () => {
  test.each([
    ["#abcdefghijklmnopqrst-_", "abcdefghijklmnopqrst-_"],
    ["", undefined],
    ["#", undefined],
    ["#main", undefined],
    ["#abcdefghijklmnopqrst-_x", undefined],
    ["#abcdefghijklmnopqrst-/", undefined],
  ])("%s", (hash, want) => expect(ticketOf(hash)).toBe(want));
});

describe("preferredLanguage", () => {
  const known = ["en", "de", "pt", "zh-CN"];
  test.each([
    [["de-AT", "en"], "de"],
    [["zh-TW"], "zh-CN"],
    [["ZH-cn"], "zh-CN"],
    [["nl", "pt-BR"], "pt"],
    [["en-GB", "de"], "en"],
    [["nl"], "en"],
    [[], "en"],
  ])("%s", (wanted, want) => expect(preferredLanguage(wanted, known)).toBe(want));
});
