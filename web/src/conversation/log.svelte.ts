// The conversation as the page shows it: events folded into items. Older events are put
// before, new ones behind; what came twice changes nothing.
import {
  commandDisplay,
  type Display,
  type Event,
  type EventOf,
  type Fields,
  fields,
  means,
  type Result,
  resultOf,
  stateOf,
  text,
} from "../lib/events";
import type { Delta } from "../lib/follow";
import { now } from "../lib/now";
import { Pieces } from "./piece";
import { type Task, tasks } from "./tasks";

export type Kind = "user" | "agent" | "tool" | "notice";

/** One thing in the list. What may change after it was made is reactive. */
export class Item {
  text = $state("");
  /** The result of a tool call. */
  result = $state.raw<Result | undefined>();
  /** What a running command has printed so far. */
  live = $state("");
  /** Whether a call waits for the person. */
  asks = $state(false);
  /** When the work began: behind the person's yes, if one was needed. */
  begun = $state(0);
  /** An answer that is still being written. */
  streaming = $state(false);
  /** An answer that was cut off, and that the agent does not know of. */
  cut = $state(false);
  /** Whether the person opened or closed it; undefined is as the card wants it. */
  open = $state<boolean | undefined>();
  /** Whether all of a long text is shown. */
  whole = $state(false);
  /** The height it had when it was last shown. */
  height = 0;
  /** And until then, the height it probably has. */
  guess = 0;
  images: string[] = [];
  files: string[] = [];
  args: Fields = {};
  /** How dangerous the call was rated. */
  risk = -1;
  display: Display = { content: "plain", title: "", main: "" };
  /** What a notice tells that has no words of its own. */
  event: Event | undefined;
  callId = "";
  pieces: Pieces | undefined;

  constructor(
    readonly key: string,
    readonly kind: Kind,
    /** The tool's name, or what the notice is about. */
    readonly name: string,
    public id: number,
    public at: number,
  ) {
    this.begun = at;
  }
}

/** States that are worth a line of their own: the others are told by what happens. */
const told = new Set(["error", "rate_limited", "stopped", "paused", "rejected"]);

/** States in which nobody finishes an answer; a call that is made again begins it anew. */
const cuts = new Set(["error", "stopped", "paused"]);

/** What the newest answer of the model has cost and used. */
export interface Usage {
  dollars: number;
  tokens: number;
  window: number;
}

export class Log {
  /** In order. The array is changed in place; version tells readers. */
  items: Item[] = [];
  version = $state(0);
  state = $state("loading");
  /** Why the agent is in its state, if that was said. */
  reason = $state("");
  title = $state<string | undefined>();
  tasks = $state.raw<Task[] | undefined>();
  usage = $state.raw<Usage | undefined>();
  /** The step of making the workspace. */
  starting = $state("");
  /** pausing is true from the wish to pause until the step in progress is over. */
  pausing = $state(false);
  oldest = Infinity;
  newest = 0;
  private statesFrom = 0;
  private tasksFrom = 0;
  private usageFrom = 0;
  private actions = new Map<number, Item>();
  private calls = new Map<string, Item>();
  /** Results whose action is on a page that was not read yet. */
  private orphans = new Map<number, Result>();
  private stream: Item | undefined;
  /** The first event of the page that is being folded: causes before it are still to come. */
  private pageFrom = 0;

  /** before puts a page of older events, newest first as the server gives them, in front. */
  before(page: Event[]): void {
    const made: Item[] = [];
    this.pageFrom = page.at(-1)?.id ?? 0;
    for (const e of [...page].reverse()) {
      if (e.id >= this.oldest) continue;
      this.fold(e, made);
    }
    if (page[0]) {
      this.oldest = Math.min(this.oldest, this.pageFrom);
      this.newest = Math.max(this.newest, page[0].id);
    }
    this.items.unshift(...made);
    this.claimStream();
    this.version++;
  }

  /** claimStream takes for output what came before its call and looked like an answer. */
  private claimStream(): void {
    const call = this.stream && this.calls.get(this.stream.callId);
    if (!call) return;
    if (!call.result) {
      call.pieces = this.stream!.pieces;
      call.live = call.pieces?.text ?? "";
    }
    this.endStream();
  }

  /** add puts a new event behind. */
  add(e: Event): void {
    if (e.id <= this.newest) return;
    this.newest = e.id;
    this.oldest = Math.min(this.oldest, e.id);
    this.fold(e, this.items);
    this.version++;
  }

  /** forget drops the oldest items; they are read again when somebody scrolls there. */
  forget(count: number): void {
    const gone = this.items.splice(0, count);
    this.oldest = this.items[0]?.id || this.oldest;
    for (const item of gone) {
      this.actions.delete(item.id);
      this.calls.delete(item.callId);
      // A result behind the cut is not read again with its action.
      if (item.result && item.result.id > this.oldest) this.orphans.set(item.id, item.result);
    }
    this.version++;
  }

  /** delta is a piece of an answer, or of the output of a command that runs. */
  delta(d: Delta): void {
    const running = this.calls.get(d.call);
    if (running) {
      if (running.result) return;
      running.pieces ??= new Pieces();
      if (running.pieces.put(d.offset, d.text ?? "")) running.live = running.pieces.text;
      return;
    }
    if (this.stream?.callId !== d.call) {
      this.endStream();
      const item = new Item(`c${d.call}`, "agent", "message", 0, now());
      item.callId = d.call;
      item.streaming = true;
      item.pieces = new Pieces();
      this.stream = item;
      this.items.push(item);
      this.version++;
    }
    const s = this.stream!;
    if (s.pieces!.put(d.offset, d.text ?? "")) s.text = s.pieces!.text;
  }

  /** endStream drops an answer that is told as an event now, or never will be. */
  private endStream(): void {
    if (!this.stream) return;
    const at = this.items.lastIndexOf(this.stream);
    if (at >= 0) this.items.splice(at, 1);
    this.stream = undefined;
    this.version++;
  }

  /** cutStream leaves the words of an answer that nobody finishes: somebody was reading them. */
  private cutStream(at: number): void {
    const item = this.stream;
    if (!item?.text.trim()) return this.endStream();
    item.streaming = false;
    item.cut = true;
    item.id = at;
    this.stream = undefined;
  }

  private fold(e: Event, to: Item[]): void {
    for (const m of means(e)) {
      const state = stateOf(m);
      if (state) this.became(m, to, ...state);
      else this.take(m, to);
    }
  }

  private take(e: Event, to: Item[]): void {
    switch (e.kind) {
      case "user_said":
        return this.spoke(e, "user", e.payload.text, to);
      case "model_answered":
        return this.answered(e, to);
      case "model_failed":
        return this.broke(e, to);
      case "tool_called":
        return this.called(e, to);
      case "command_typed":
        this.work(e, "command", commandDisplay, { command: e.payload.command }, to);
        return;
      case "tool_returned":
        return this.returned(e, to);
      case "command_ended":
        return this.ended(resultOf(e), e.payload.cause, "command", commandDisplay, {}, to);
      case "set_up":
        return this.ended(resultOf(e), 0, "command", commandDisplay, {}, to);
      case "recalled":
        return this.recalled(e, to);
      case "briefed":
        return this.note(e, e.kind, e.payload.prompt, to);
      case "condensed":
        return this.note(e, e.kind, e.payload.summary, to);
      case "nudged":
        return this.note(e, e.kind, e.payload.text, to);
      case "noted":
        return this.note(e, e.payload.error ? "failure" : "note", e.payload.message, to);
      case "checked_out":
      case "trust_set":
      case "egress_set":
      case "overridden":
      case "request_opened":
        return this.note(e, e.kind, "", to);
      default:
        if (to === this.items) this.goesOn(e);
    }
  }

  /** goesOn heeds what is only true until something newer happens. */
  private goesOn(e: Event): void {
    if (e.kind === "titled") this.title = e.payload.title;
    else if (e.kind === "workspace_step") this.starting = e.payload.step === "cloning" ? "setup" : e.payload.step;
    else if (e.kind === "workspace_ready") this.starting = "";
    else if (e.kind === "pause_requested") this.pausing = true;
  }

  private used({ id, payload: { totals, usage } }: EventOf<"model_answered" | "tool_called">): void {
    if (id < this.usageFrom || !(totals.input || totals.cost)) return;
    this.usageFrom = id;
    this.usage = { dollars: (totals.cost ?? 0) / 1e9, tokens: (usage?.input ?? 0) + (usage?.output ?? 0), window: usage?.window ?? 0 };
  }

  private planned(id: number, list: Task[] | undefined): void {
    if (!list?.length || id <= this.tasksFrom) return;
    this.tasksFrom = id;
    this.tasks = list;
  }

  private called(e: EventOf<"tool_called">, to: Item[]): void {
    const { id, name, display, thought = "", risk, awaits } = e.payload;
    const args = fields(e.payload.args);
    this.used(e);
    if (display.content === "hidden") return;
    if (display.content === "checklist") this.planned(e.id, tasks(args));
    // Pieces of its output may have come before the call itself, as if they were an answer.
    const early = id && to === this.items && this.stream?.callId === id ? this.stream.pieces : undefined;
    this.endStreamIn(to);
    const item = this.work(e, name, display, args, to);
    item.risk = risk;
    item.callId = id;
    item.pieces = early;
    item.live = early?.text ?? "";
    item.text = display.content === "thought" ? [thought, text(args, display.main)].filter(Boolean).join("\n") : thought;
    item.asks = !item.result && !!awaits;
    // Also with its result: a piece of its output may come late, and is no answer.
    if (id) this.calls.set(id, item);
  }

  /** work puts a call, with its result if that was read before. */
  private work(e: Event, name: string, display: Display, args: Fields, to: Item[]): Item {
    const item = new Item(`e${e.id}`, "tool", name, e.id, Date.parse(e.time));
    item.args = args;
    item.display = display;
    item.result = this.orphans.get(e.id);
    this.orphans.delete(e.id);
    this.actions.set(e.id, item);
    to.push(item);
    return item;
  }

  private answered(e: EventOf<"model_answered">, to: Item[]): void {
    const { text = "", tool_calls = [], purpose } = e.payload;
    if (purpose) return; // a title or a summary
    this.used(e);
    // Words beside calls are told with the first of them.
    if (text && tool_calls.length === 0) this.spoke(e, "agent", text, to);
  }

  /** broke tells of a call of the model that failed by itself, and shows what one that was interrupted had written. */
  private broke(e: EventOf<"model_failed">, to: Item[]): void {
    const { class: why, message = "", retried, text } = e.payload;
    if (text) this.spoke(e, "agent", `${text}\n\n[${message.replace(/\.$/, "")}]`, to);
    else if (why !== "cancelled" && why !== "owner_lost") this.note(e, retried ? "note" : "failure", message, to);
  }

  private spoke(e: EventOf<"user_said" | "model_answered" | "model_failed">, kind: Kind, words: string, to: Item[]): void {
    const stream = kind === "agent" && to === this.items ? this.stream : undefined;
    // The words that were written before one's eyes stay where they are.
    const item = stream ?? new Item(`e${e.id}`, kind, "message", e.id, Date.parse(e.time));
    item.id = e.id;
    item.at = Date.parse(e.time);
    item.text = words;
    if (e.kind === "user_said") {
      item.images = e.payload.images ?? [];
      item.files = e.payload.files ?? [];
    }
    item.streaming = false;
    if (stream) this.stream = undefined;
    else this.behind(item, to);
  }

  /** behind puts an item last, but for an answer that is still being written. */
  private behind(item: Item, to: Item[]): void {
    if (to === this.items && this.stream && to.at(-1) === this.stream) to.splice(-1, 0, item);
    else to.push(item);
  }

  private endStreamIn(to: Item[]): void {
    if (to === this.items) this.endStream();
  }

  private returned(e: EventOf<"tool_returned">, to: Item[]): void {
    const { name, display, cause, outcome } = e.payload;
    // Its call says it all, or there is nothing to say.
    if (outcome === "ok" && (display.content === "message" || display.content === "hidden")) return;
    const args = fields(e.payload.args);
    const result = resultOf(e);
    if (display.content === "checklist" && !result.failed) this.planned(e.id, tasks(result.details) ?? tasks(args));
    this.ended(result, cause, name, display, args, to);
  }

  /** ended joins a result and its call, or shows one that answers none by itself. */
  private ended(result: Result, cause: number, name: string, display: Display, args: Fields, to: Item[]): void {
    const call = this.actions.get(cause);
    if (call) {
      call.result = result;
      call.live = "";
      call.asks = false;
      call.pieces = undefined;
      return;
    }
    if (cause && to !== this.items && cause < this.pageFrom) {
      this.orphans.set(cause, result);
      return;
    }
    const item = new Item(`e${result.id}`, result.failed ? "notice" : "tool", result.failed ? "failure" : name, result.id, result.at);
    item.args = args;
    item.display = display;
    item.result = result;
    item.text = result.failed ? result.output : "";
    this.behind(item, to);
  }

  private recalled(e: EventOf<"recalled">, to: Item[]): void {
    const told = text(fields(e.payload.details), "conversation_instructions");
    if (told) this.note(e, "instructions", told, to);
    const known = e.payload.items ?? [];
    if (known.length > 0) this.note(e, "recall", known.map((k) => k.name).join(", "), to);
  }

  private note(e: Event, name: string, words: string, to: Item[]): void {
    const item = new Item(`${name}${e.id}`, "notice", name, e.id, Date.parse(e.time));
    item.text = words;
    if (!words) item.event = e;
    this.behind(item, to);
  }

  /** decided: whatever asked does not any more, and what was allowed begins now. */
  private decided(at: number): void {
    for (const item of this.calls.values()) {
      if (!item.asks) continue;
      item.asks = false;
      item.begun = at;
    }
  }

  private became(e: Event, to: Item[], state: string, reason = ""): void {
    if (e.id > this.statesFrom) {
      this.statesFrom = e.id;
      this.state = state;
      this.pausing = false;
      this.reason = reason;
      if (to === this.items && cuts.has(state)) this.cutStream(e.id);
      else if (state !== "running" && state !== "loading") this.endStreamIn(to);
      if (state !== "loading") this.starting = "";
    }
    // What an older page tells is past for the calls of newer ones.
    if (state !== "awaiting_user_confirmation" && e.id === this.statesFrom) this.decided(Date.parse(e.time));
    if (told.has(state)) this.note(e, `state.${state}`, reason, to);
  }
}
