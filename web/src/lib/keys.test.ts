import { describe, expect, it } from "vitest";

import { plain, shown, written } from "./keys";

const press = (key: string, held: Partial<KeyboardEvent> = {}) => ({
  key,
  metaKey: false,
  ctrlKey: false,
  altKey: false,
  shiftKey: false,
  ...held,
});

describe("written", () => {
  it.each([
    [press("k", { ctrlKey: true }), false, "mod+k"],
    [press("k", { metaKey: true }), true, "mod+k"],
    [press("k", { metaKey: true }), false, "k"],
    [press("?", { shiftKey: true }), false, "?"],
    [press("G", { shiftKey: true }), false, "g"],
    [press("Enter", { shiftKey: true }), false, "shift+Enter"],
    [press("1", { altKey: true }), false, "alt+1"],
    [press("¡", { altKey: true, code: "Digit1" }), true, "alt+1"],
    [press("Shift", { shiftKey: true }), false, ""],
  ])("%j, on a Mac %j: %s", (e, mac, want) => expect(written(e, mac)).toBe(want));
});

it.each([
  ["mod+k", false, ["Ctrl", "K"]],
  ["mod+Enter", true, ["⌘", "⏎"]],
  ["alt+1", false, ["Alt", "1"]],
  ["g h", false, ["G", "H"]],
  ["?", false, ["?"]],
  ["End", false, ["End"]],
])("%s is shown, on a Mac %j, as %j", (keys, mac, want) => expect(shown(keys, mac)).toEqual(want));

it.each([
  ["g h", true],
  ["?", true],
  ["mod+k", false],
  ["alt+1", false],
])("%s is plain: %j", (keys, want) => expect(plain(keys)).toBe(want));
