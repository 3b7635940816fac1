import { EditorState } from "@codemirror/state";
import { describe, expect, it } from "vitest";

import { sameBut, separator } from "./line-endings";

describe("ends of lines", () => {
  it.each(["", "a", "a\nb\n", "a\r\nb\r\n", "\r\n", "\n", "a\r\nb\nc\r\n", "a\rb", "\na\r\n", "a\r\r\nb"])(
    "come out of the editor as they went in: %j",
    (text) => {
      const state = EditorState.create({ doc: text, extensions: EditorState.lineSeparator.of(separator(text)) });
      expect(state.sliceDoc()).toBe(text);
    },
  );

  it("part lines where all of them say so", () => {
    expect(separator("a\r\nb")).toBe("\r\n");
    expect(separator("a\r\nb\n")).toBe("\n");
  });

  it("may be all that differs", () => {
    expect(sameBut("a\nb", "a\r\nb")).toBe(true);
    expect(sameBut("a\nb", "a\nb")).toBe(false);
    expect(sameBut("a", "b")).toBe(false);
  });
});
