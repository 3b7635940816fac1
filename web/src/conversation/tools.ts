// The tools that have cards of their own, by the names that models know.
import { type Fields, fields, text } from "../lib/events";

export type Form = "run" | "python" | "edit" | "read" | "browse" | "think" | "tasks" | "delegate" | "finish" | "gave-up" | "other";

const forms: Record<string, Form> = {
  execute_bash: "run",
  execute_ipython_cell: "python",
  str_replace_editor: "edit",
  edit_file: "edit",
  browser: "browse",
  browse: "browse",
  fetch: "browse",
  think: "think",
  task_tracker: "tasks",
  delegate: "delegate",
  finish: "finish",
  reject: "gave-up",
};

/** formOf is the card of a call. All tools of MCP servers share one. */
export function formOf(tool: string, args: Fields): Form {
  const form = forms[tool] ?? "other";
  return form === "edit" && text(args, "command") === "view" ? "read" : form;
}

export interface Task {
  title: string;
  status: string;
  notes: string;
}

/** tasks is the task list in what the tool was given or said, if there is one. */
export function tasks(from: Fields | undefined): Task[] | undefined {
  const list = from?.task_list;
  return Array.isArray(list)
    ? list.map(fields).map((x) => ({ title: text(x, "title"), status: text(x, "status"), notes: text(x, "notes") }))
    : undefined;
}
