import { expect, test } from "vitest";

import { change, main } from "./asked";

test("only a command is all of its call", () => {
  expect(main("execute_bash", { command: "ls" })).toBe("command");
  expect(main("execute_bash", { command: 7 })).toBeUndefined();
  expect(main("str_replace_editor", { command: "create", path: "/etc/passwd", file_text: "x" })).toBeUndefined();
  expect(main("server_tool", { command: "delete", target: "all" })).toBeUndefined();
});

test("an edit is shown as what it changes", () => {
  const made = change({ command: "create", path: "a", file_text: "one\ntwo\n" });
  expect(made?.path).toBe("a");
  expect(made?.rows.map((r) => `${r.kind} ${r.text}`)).toEqual(["added one", "added two"]);
  expect(change({ command: "str_replace", path: "a", old_str: "x", new_str: "y" })?.rows.map((r) => r.kind)).toEqual(["removed", "added"]);
  expect(change({ command: "undo_edit", path: "a" })).toBeUndefined();
  expect(change({ query: "x" })).toBeUndefined();
});
