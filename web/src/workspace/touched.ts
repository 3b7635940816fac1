// Which panels an event concerns.

export interface Touched {
  files: boolean;
  looks: boolean;
  state: boolean;
}

/** Results of tools that may leave the workspace other than it was. */
const writers = new Set(["run", "run_ipython", "edit", "write", "mcp", "delegate"]);

export function touched(event: Record<string, unknown>): Touched {
  const result = event.observation;
  return {
    files: typeof result === "string" && writers.has(result),
    looks: result === "browse",
    state: result === "agent_state_changed",
  };
}
