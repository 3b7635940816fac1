import { describe, expect, test } from "vitest";

import { ansi, clip } from "./ansi";

const plain = (s: string) => ansi(s).map((line) => line.map((x) => x.text).join(""));

describe("output of a terminal", () => {
  test.each([
    ["two lines", "a\nb", ["a", "b"]],
    ["line ends of other systems", "a\r\nb\r\n", ["a", "b", ""]],
    ["a progress bar", "10%\r20%\rdone", ["done"]],
    ["a shorter text over a longer one", "abcdef\rXY", ["XYcdef"]],
    ["a line that is wiped", "abcdef\r\x1b[KXY", ["XY"]],
    ["a whole line that is wiped", "abc\x1b[2K\rX", ["X"]],
    ["a step back", "ab\bc", ["ac"]],
    ["a title", "\x1b]0;title\x07text", ["text"]],
    ["a link", "\x1b]8;;https://example.org\x1b\\word\x1b]8;;\x1b\\", ["word"]],
    ["moves of the cursor", "\x1b[2J\x1b[1;1Htext\x1b[?25l", ["text"]],
    ["control characters", "a\x00\x07b", ["ab"]],
    ["an end in the middle", "a\x1b", ["a"]],
    ["a sequence without an end", "a\x1b[31", ["a"]],
  ])("%s", (_, from, want) => expect(plain(from)).toEqual(want));

  test.each([
    ["\x1b[31mx", { text: "x", class: "ansi-fg-1" }],
    ["\x1b[1;4;92mx", { text: "x", class: "ansi-bold ansi-underline ansi-fg-10" }],
    ["\x1b[44mx", { text: "x", class: "ansi-bg-4" }],
    ["\x1b[7;31;42mx", { text: "x", class: "ansi-fg-2 ansi-bg-1" }],
    ["\x1b[7mx", { text: "x", class: "", color: "var(--color-paper)", background: "var(--color-ink)" }],
    ["\x1b[38;5;9mx", { text: "x", class: "ansi-fg-9" }],
    ["\x1b[38;5;208mx", { text: "x", class: "", color: "rgb(255 135 0)" }],
    ["\x1b[48;5;244mx", { text: "x", class: "", background: "color-mix(in oklab, rgb(128 128 128) 25%, transparent)" }],
    ["\x1b[38;2;1;2;999mx", { text: "x", class: "", color: "rgb(1 2 255)" }],
    ["\x1b[38:2:1:2:3mx", { text: "x", class: "", color: "rgb(1 2 3)" }],
    ["\x1b[38;5;999mx", { text: "x", class: "" }],
    ["\x1b[31m\x1b[0mx", { text: "x", class: "" }],
    ["\x1b[1;31m\x1b[22;39mx", { text: "x", class: "" }],
    ["\x1b[31m\x1b[mx", { text: "x", class: "" }],
  ])("%j", (from, want) => expect(ansi(from)).toEqual([[want]]));

  test("turns colours round so that they can be read", () => {
    expect(ansi("\x1b[7mx")).toEqual([[{ text: "x", class: "", color: "var(--color-paper)", background: "var(--color-ink)" }]]);
    expect(ansi("\x1b[7;31mx")).toEqual([[{ text: "x", class: "ansi-bg-1" }]]);
    expect(ansi("\x1b[7;42mx")).toEqual([[{ text: "x", class: "ansi-fg-2" }]]);
  });

  test("keeps a colour over lines and joins what looks alike", () => {
    expect(ansi("\x1b[32ma\x1b[32mb\nc\x1b[0md")).toEqual([
      [{ text: "ab", class: "ansi-fg-2" }],
      [
        { text: "c", class: "ansi-fg-2" },
        { text: "d", class: "" },
      ],
    ]);
  });

  test("clips a line that is too long", () => {
    const line = ansi("\x1b[32mgreen\x1b[0mplain")[0]!;
    expect(clip(line, 10)).toBe(line);
    expect(clip(line, 7).map((s) => s.text)).toEqual(["green", "pl", " …"]);
    expect(clip(line, 5).map((s) => s.text)).toEqual(["green", "", " …"]);
  });

  test("takes whatever comes", () => {
    let seed = 7;
    const next = () => (seed = (seed * 48271) % 2147483647);
    for (let i = 0; i < 300; i++) {
      const text = Array.from({ length: 40 }, () => "\x1b[]0;m38K\r\b\n\x07aü😀"[next() % 18] ?? "x").join("");
      expect(plain(text).join("")).not.toMatch(/[\x00-\x08\x0b-\x1f]/);
    }
  });
});
