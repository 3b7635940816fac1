import { describe, expect, it } from "vitest";

import { commandIn, nearest, rank, replaced, triggerAt } from "./trigger";

describe("triggerAt", () => {
  const at = (text: string) => triggerAt(text, text.length);
  it.each([
    ["/", "command", ""],
    ["/rev", "command", "rev"],
    ["/db:dump", "command", "db:dump"],
    ["look at @", "mention", ""],
    ["look at @src/a", "mention", "src/a"],
    ["(@x", "mention", "x"],
    ['see @"my no', "mention", "my no"],
  ])("completes %s", (text, kind, query) => expect(at(text)).toMatchObject({ kind, query }));
  it.each(["", "hello", "a /b", "/review now", "mail me@example.org", "@a b", '@"a b" c'])("leaves %s alone", (text) =>
    expect(at(text)).toBeUndefined(),
  );
  it("looks at the caret, not at the end", () => expect(triggerAt("see @fi and more", 7)).toMatchObject({ from: 4, to: 7, query: "fi" }));
});

it("commandIn finds the name and the arguments", () => {
  expect(commandIn("/fix 12 now\nplease")).toEqual({ name: "fix", args: "12 now\nplease" });
  expect(commandIn("/new")).toEqual({ name: "new", args: "" });
  expect(commandIn("/etc/passwd is a file")).toBeUndefined();
  expect(commandIn("either/or")).toBeUndefined();
});

it("replaced keeps what is behind", () => {
  const text = "see @fi and more";
  expect(replaced(text, triggerAt(text, 7)!, "@file.go")).toEqual({ text: "see @file.go and more", caret: 13 });
  expect(replaced("@f", triggerAt("@f", 2)!, "@file.go")).toEqual({ text: "@file.go ", caret: 9 });
});

it("rank prefers beginnings, then parts, then letters in order", () => {
  expect(rank("model", "mo")).toBeLessThan(rank("demo", "mo"));
  expect(rank("demo", "mo")).toBeLessThan(rank("my-other", "mo"));
  expect(rank("review", "xyz")).toBe(Infinity);
});

it("nearest is the command that was probably meant", () => {
  const names = ["undo", "redo", "review", "new"];
  expect(nearest("undoo", names)).toBe("undo");
  expect(nearest("udno", names)).toBe("undo");
  expect(nearest("Undo", names)).toBe("undo");
  expect(nearest("rev", names)).toBe("review");
  expect(nearest("etc", names)).toBeUndefined();
});
