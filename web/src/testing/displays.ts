// Displays as tools declare them, one for each content.
import type { Display } from "../lib/events";

const display = (content: Display["content"], more: Partial<Display> = {}): Display => ({ content, title: "", main: "", ...more });

export const displays = {
  plain: display("plain"),
  command: display("command", { main: "command" }),
  code: display("code", { main: "code" }),
  read: display("file", { read_only: true, file: { path: "path", lines: "view_range" } }),
  create: display("file", { file: { path: "path", after: "file_text", creates: true } }),
  replace: display("file", { file: { path: "path", before: "old_str", after: "new_str" } }),
  undo: display("file", { file: { path: "path" } }),
  steps: display("page", { main: "code", read_only: true }),
  page: display("page", { main: "url", read_only: true }),
  checklist: display("checklist", { read_only: true }),
  thought: display("thought", { main: "thought", read_only: true }),
  message: display("message", { main: "message", read_only: true }),
  rejection: display("rejection", { title: "Too dangerous.", read_only: true }),
  conversation: display("conversation"),
  hidden: display("hidden", { read_only: true }),
};
