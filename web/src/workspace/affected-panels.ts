// Which panels of the workspace an event affects.
import { type Event, stateOf } from "../lib/events";

export interface AffectedPanels {
  files: boolean;
  pages: boolean;
  /** Whether the status of the conversation or its sandbox changed, which all panels show. */
  status: boolean;
}

export function affectedPanels(e: Event): AffectedPanels {
  const ready = e.kind === "workspace_ready";
  const display = e.kind === "tool_returned" ? e.payload.display : undefined;
  const restored = e.kind === "restored" && !!e.payload.files;
  return {
    files: ready || restored || (!!display && !display.read_only) || e.kind === "command_ended" || e.kind === "set_up",
    pages: display?.content === "page",
    status: ready || e.kind === "workspace_step" || stateOf(e) !== undefined,
  };
}
