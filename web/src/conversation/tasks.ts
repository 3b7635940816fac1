// The task list of the agent.
import { type Fields, fields, text } from "../lib/events";

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
