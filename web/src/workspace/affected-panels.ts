// Which panels an event concerns.
import { type Event, stateOf } from "../lib/events";

export interface Touched {
  files: boolean;
  looks: boolean;
  state: boolean;
}

export function touched(e: Event): Touched {
  const made = e.kind === "workspace_ready"; // there is something to look into now
  const display = e.kind === "tool_returned" ? e.payload.display : undefined;
  return {
    files: made || (!!display && !display.read_only) || e.kind === "command_ended" || e.kind === "set_up",
    looks: display?.content === "page",
    state: made || e.kind === "workspace_step" || stateOf(e) !== undefined,
  };
}
