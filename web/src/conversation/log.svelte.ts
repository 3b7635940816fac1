// The conversation as the page shows it: events folded into items. Older events are put
// before, new ones behind; what came twice changes nothing.
import { type Event, type Fields, type Metrics, type Status, slim, type Task, tasks, text, texts } from "./events";
import type { Delta } from "../lib/follow";
import { now } from "../lib/now";
import { Pieces } from "./piece";

export type Kind = "user" | "agent" | "tool" | "notice";

/** One thing in the list. What may change after it was made is reactive. */
export class Item {
  text = $state("");
  /** The result of a tool call. */
  result = $state.raw<Event | undefined>();
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
  callId = "";
  pieces: Pieces | undefined;

  constructor(
    readonly key: string,
    readonly kind: Kind,
    /** The action's name, or what the notice is about. */
    public name: string,
    public id: number,
    public at: number,
  ) {
    this.begun = at;
  }
}

const noisy = new Set(["change_agent_state", "recall", "null", "condensation_request"]);

/** States that are worth a line of their own: the others are told by what happens. */
const told = new Set(["error", "rate_limited", "stopped", "paused", "rejected"]);

/** States in which nobody finishes an answer; a call that is made again begins it anew. */
const cuts = new Set(["error", "stopped", "paused"]);

export class Log {
  /** In order. The array is changed in place; version tells readers. */
  items: Item[] = [];
  version = $state(0);
  state = $state("loading");
  /** Why the agent is in its state, if that was said. */
  reason = $state("");
  title = $state<string | undefined>();
  tasks = $state.raw<Task[] | undefined>();
  metrics = $state.raw<Metrics | undefined>();
  /** The words about a workspace that is being made. */
  starting = $state("");
  /** pausing is true from the wish to pause until the step in progress is over. */
  pausing = $state(false);
  oldest = Infinity;
  newest = 0;
  private statesFrom = 0;
  private tasksFrom = 0;
  private metricsFrom = 0;
  private actions = new Map<number, Item>();
  private calls = new Map<string, Item>();
  /** Results whose action is on a page that was not read yet. */
  private orphans = new Map<number, Event>();
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

  status(s: Status, id: number): void {
    if (id <= this.newest) return;
    this.newest = id;
    if (s.conversation_title) {
      this.title = s.conversation_title;
      return;
    }
    if (/^STATUS\$(BUILDING_RUNTIME|STARTING_RUNTIME|SETTING_UP_WORKSPACE|SETTING_UP_GIT_HOOKS)$/.test(s.id ?? "")) {
      this.starting = s.id!;
      return;
    }
    if (s.id === "STATUS$PAUSING") {
      this.pausing = true;
      return;
    }
    if (s.id === "STATUS$READY") {
      this.starting = "";
      return;
    }
    this.noted(s, id, now(), this.items);
    this.version++;
  }

  private noted(s: Status, id: number, at: number, to: Item[]): void {
    if (s.conversation_title || /^STATUS\$(READY|PAUSING|BUILDING_|STARTING_|SETTING_UP_)/.test(s.id ?? "")) return;
    const item = new Item(`s${id}`, "notice", s.type === "error" ? "failure" : (s.id ?? ""), id, at);
    item.text = s.message ?? "";
    this.behind(item, to);
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
    this.measure(e);
    if (e.status) this.noted(e.status, e.id, Date.parse(e.timestamp), to);
    else if (e.observation) this.observed(slim(e), to);
    else if (e.action) this.acted(slim(e), to);
  }

  private measure(e: Event): void {
    if (e.llm_metrics && e.id > this.metricsFrom) {
      this.metricsFrom = e.id;
      this.metrics = e.llm_metrics;
    }
    const list = e.action === "task_tracking" ? tasks(e.args) : e.observation === "task_tracking" ? tasks(e.extras) : undefined;
    if (list && list.length > 0 && e.id > this.tasksFrom) {
      this.tasksFrom = e.id;
      this.tasks = list;
    }
  }

  private acted(e: Event, to: Item[]): void {
    const name = e.action!;
    if (noisy.has(name)) return;
    if (name === "message") return this.spoke(e, to);
    const callId = e.tool_call_metadata?.tool_call_id ?? "";
    // Pieces of its output may have come before the call itself, as if they were an answer.
    const early = callId && to === this.items && this.stream?.callId === callId ? this.stream.pieces : undefined;
    if (e.source === "agent") this.endStreamIn(to);
    const kind = name === "system" || name === "condensation" ? "notice" : "tool";
    const item = new Item(`e${e.id}`, kind, name, e.id, Date.parse(e.timestamp));
    item.args = e.args ?? {};
    item.callId = callId;
    item.pieces = early;
    item.live = early?.text ?? "";
    item.text = name === "condensation" ? text(e.args, "summary") : name === "system" ? text(e.args, "content") : text(e.args, "thought");
    if (kind === "tool") {
      this.actions.set(e.id, item);
      item.result = this.orphans.get(e.id);
      this.orphans.delete(e.id);
      item.asks = !item.result && text(e.args, "confirmation_state") === "awaiting_confirmation";
      // Also with its result: a piece of its output may come late, and is no answer.
      if (item.callId) this.calls.set(item.callId, item);
    }
    to.push(item);
  }

  private spoke(e: Event, to: Item[]): void {
    const mine = e.source === "user";
    const stream = !mine && to === this.items ? this.stream : undefined;
    // The words that were written before one's eyes stay where they are.
    const item = stream ?? new Item(`e${e.id}`, mine ? "user" : "agent", "message", e.id, Date.parse(e.timestamp));
    item.id = e.id;
    item.at = Date.parse(e.timestamp);
    item.text = text(e.args, "content");
    item.images = texts(e.args, "image_urls");
    item.files = texts(e.args, "file_urls");
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

  private observed(e: Event, to: Item[]): void {
    const name = e.observation!;
    if (name === "agent_state_changed") return this.became(e, to);
    if (name === "null") return;
    if (name === "recall") return this.recalled(e, to);
    const action = e.cause ? this.actions.get(e.cause) : undefined;
    if (action) {
      action.result = e;
      action.live = "";
      action.asks = false;
      action.pieces = undefined;
      return;
    }
    if (e.cause && to !== this.items && e.cause < this.pageFrom) {
      this.orphans.set(e.cause, e);
      return;
    }
    const item = new Item(`e${e.id}`, name === "error" ? "notice" : "tool", name === "error" ? "failure" : name, e.id, Date.parse(e.timestamp));
    item.args = e.extras ?? {};
    item.result = e;
    item.text = name === "error" ? (e.content ?? "") : "";
    this.behind(item, to);
  }

  private recalled(e: Event, to: Item[]): void {
    const told = text(e.extras, "conversation_instructions");
    if (told) this.behind(this.remark("instructions", e, told), to);
    const known = (e.extras?.microagent_knowledge as { name?: string }[] | undefined) ?? [];
    if (known.length === 0) return;
    this.behind(this.remark("recall", e, known.map((k) => k.name ?? "").join(", ")), to);
  }

  private remark(name: string, e: Event, words: string): Item {
    const item = new Item(`${name}${e.id}`, "notice", name, e.id, Date.parse(e.timestamp));
    item.text = words;
    return item;
  }

  /** answered: whatever asked does not any more, and what was allowed begins now. */
  private answered(at: number): void {
    for (const item of this.calls.values()) {
      if (!item.asks) continue;
      item.asks = false;
      item.begun = at;
    }
  }

  private became(e: Event, to: Item[]): void {
    const state = text(e.extras, "agent_state");
    const reason = text(e.extras, "reason");
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
    if (state !== "awaiting_user_confirmation" && e.id === this.statesFrom) this.answered(Date.parse(e.timestamp));
    if (!told.has(state)) return;
    const item = new Item(`e${e.id}`, "notice", `state.${state}`, e.id, Date.parse(e.timestamp));
    item.text = reason;
    this.behind(item, to);
  }
}
