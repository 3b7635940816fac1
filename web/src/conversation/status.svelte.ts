// The current status of a conversation, from its events. Pages of older events are read after
// newer ones, so each value remembers the event that it comes from.
import type { Event, EventOf } from "../lib/events";
import type { QueuePlace } from "../lib/follow";
import type { Task } from "./tasks";

/** Cost and context use of the newest answer. */
export interface Usage {
  dollars: number;
  tokens: number;
  window: number;
}

export class Status {
  state = $state("loading");
  /** The reason for the state, if one was given. */
  reason = $state("");
  title = $state<string | undefined>();
  tasks = $state.raw<Task[] | undefined>();
  usage = $state.raw<Usage | undefined>();
  /** The models that were asked, as far as the events are loaded. */
  models = $state.raw<string[]>([]);
  /** The current step of starting the workspace. */
  starting = $state("");
  /** Whether the state was set by the end of a turn: an agent that is rate limited then does not try again by itself. */
  turnEnded = $state(false);
  /** True from the request to pause until the step in progress is over. */
  pausing = $state(false);
  /** What the agent waits for, between two items of the history, and since when. */
  waits = $state.raw<{ for: "model" | "summary" | "retry"; since: number } | undefined>();
  /** The position in the queue for a free slot. */
  queue = $state.raw<QueuePlace>(null);
  /** The event that set the state. */
  stateFrom = 0;
  private tasksFrom = 0;
  private usageFrom = 0;

  /** become sets the state; false if this or a newer event has set it before. */
  become(id: number, state: string, reason: string, turnEnded = false): boolean {
    if (id <= this.stateFrom) return false;
    this.stateFrom = id;
    this.state = state;
    this.reason = reason;
    this.turnEnded = turnEnded;
    this.pausing = false;
    if (state !== "loading") this.starting = "";
    return true;
  }

  useModel(name: string): void {
    if (name && !this.models.includes(name)) this.models = [...this.models, name];
  }

  setUsage({ id, payload: { totals, usage } }: EventOf<"model_answered" | "tool_called">): void {
    if (id < this.usageFrom || !(totals.input || totals.cost)) return;
    this.usageFrom = id;
    this.usage = { dollars: (totals.cost ?? 0) / 1e9, tokens: (usage?.input ?? 0) + (usage?.output ?? 0), window: usage?.window ?? 0 };
  }

  setTasks(id: number, list: Task[] | undefined): void {
    if (!list?.length || id <= this.tasksFrom) return;
    this.tasksFrom = id;
    this.tasks = list;
  }

  /** follow takes what only new events tell. */
  follow(e: Event): void {
    if (e.kind === "titled") this.title = e.payload.title;
    else if (e.kind === "workspace_step")
      this.starting = ({ cloning: "setup", missing: "" } as Record<string, string>)[e.payload.step] ?? e.payload.step;
    else if (e.kind === "workspace_ready") this.starting = "";
    else if (e.kind === "pause_requested") this.pausing = true;
  }

  /** note takes what a new event tells of the agent's waiting. */
  note(e: Event): void {
    const since = Date.parse(e.time);
    if (e.kind === "model_asked") {
      if (e.payload.purpose !== "title") this.waits = { for: e.payload.purpose === "summary" ? "summary" : "model", since };
    } else if (e.kind === "model_failed" && e.payload.retried) this.waits = { for: "retry", since };
    else if (e.kind === "turn_began" || e.kind === "tool_returned" || e.kind === "resumed") this.waits = { for: "model", since };
  }
}
