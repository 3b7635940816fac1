import { describe, expect, test } from "vitest";

import { isDamaged, nextOf, preferredLanguage, ticketOf, turnedAway } from "./link";

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

describe("isDamaged", () => {
  test.each([
    ["/login", "#abcdefghijklmnopqrst-_", false],
    ["/login", "#abcdefghijklmnopqrst-", true],
    ["/deckhand/login", "#abc", true],
    ["/login", "", false],
    ["/login", "#main", false],
    ["/settings", "#abc", false],
  ])("%s%s", (path, hash, want) => expect(isDamaged(path, hash)).toBe(want));
});

describe("nextOf", () => {
  test.each([
    ["/settings/keys?x=1", "/settings/keys?x=1"],
    ["/conversations/c1", "/conversations/c1"],
    [null, "/"],
    ["", "/"],
    ["settings", "/"],
    ["//evil.example", "/"],
    ["/\\evil.example", "/"],
    ["/\t/evil.example", "/"],
    ["/..//evil.example", "/"],
    ["/%2e%2e//evil.example", "/"],
    ["https:evil.example", "/"],
    ["javascript:alert(1)", "/"],
    ["//[", "/"],
    ["/login?next=/login", "/"],
    ["/login/oidc", "/"],
    ["/api/me", "/"],
    ["/apiary", "/apiary"],
  ])("%s", (wanted, want) => expect(nextOf(wanted)).toBe(want));
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

describe("turnedAway", () => {
  test.each([
    ["/login", "?sign_on=denied", true],
    ["/ship/login", "?next=%2Fx&sign_on=failed", true],
    ["/login", "?sign_on=expired", false],
    ["/login", "", false],
    ["/settings", "?sign_on=denied", false],
  ])("%s%s", (path, search, want) => expect(turnedAway(path, search)).toBe(want));
});
