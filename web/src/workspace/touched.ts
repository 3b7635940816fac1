// Which panels an event concerns.
import { browsers, type Event, fields, stateOf, text } from "../lib/events";

export interface Touched {
  files: boolean;
  looks: boolean;
  state: boolean;
}

/** Tools that leave the workspace as it is. */
const readers = new Set(["think", "task_tracker", "finish", "request_condensation", ...browsers]);

export function touched(e: Event): Touched {
  const made = e.kind === "workspace_ready"; // there is something to look into now
  const looked =
    e.kind === "tool_returned" && e.payload.name === "str_replace_editor" && text(fields(e.payload.args), "command") === "view";
  const ended = e.kind === "tool_returned" && !looked && !readers.has(e.payload.name);
  return {
    files: made || ended || e.kind === "command_ended" || e.kind === "set_up",
    looks: e.kind === "tool_returned" && browsers.includes(e.payload.name),
    state: made || e.kind === "workspace_step" || stateOf(e) !== undefined,
  };
}
