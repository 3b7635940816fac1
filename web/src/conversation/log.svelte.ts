// The history as the page shows it: events become items. Pages of older events are put in
// front, new events at the end; an event that arrives twice changes nothing.
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
import { Item, type Kind } from "./item.svelte";
import { type Read, readBy } from "./reads";
import { type Restore, visible, within } from "./restores";
import { Retries } from "./retries";
import { Status } from "./status.svelte";
import { StreamedText } from "./streamed-text";
import { tasks } from "./tasks";

/** States that get a notice: other items tell of the rest. */
const noticed = new Set(["error", "rate_limited", "stopped", "paused", "rejected"]);

/** States in which an answer that is being written stays unfinished. In others the model is called again. */
const cuts = new Set(["error", "stopped", "paused"]);

/** Notices with their own icon and title, by code. */
const noticeOf: Record<string, string> = {
  STATUS$ATTEMPTS_STARTED: "attempts",
  STATUS$TESTS_PASSED: "tests.passed",
  STATUS$TESTS_FAILED: "tests.failed",
};

export class Log {
  /** In order. The array is changed in place; version changes with it. */
  items: Item[] = [];
  version = $state(0);
  readonly status = new Status();
  /** Whether files can be restored, and the event of the last restore. */
  checkpoints = $state(false);
  lastRestored = $state(0);
  oldest = Infinity;
  newest = 0;
  private byEvent = new Map<number, Item>();
  private byCall = new Map<string, Item>();
  /** Results whose call is on a page that was not read yet, by the event of the call. */
  private orphans = new Map<number, Result>();
  /** The answer that is being written. */
  private stream: Item | undefined;
  /** Whether the newest override known says plan mode, and its event. */
  private plan = false;
  private planFrom = 0;
  /** Messages that the agent had not read at the last event, and where it read others. */
  private unread: Item[] = [];
  private reads: Read[] = [];
  /** Messages that were withdrawn; they may be on a page still to come. */
  private withdrawn = new Set<number>();
  /** Restores of the conversation, in order. */
  private restores: Restore[] = [];
  private retries = new Retries((...notice) => this.addNotice(...notice));
  /** Calls for a title or a summary. */
  private aside = new Set<string>();
  /** Events with which compacting the history ended. */
  private compacted: number[] = [];
  /** The first event of the page that is being read: calls before it are on a page still to come. */
  private pageFrom = 0;

  /** prepend puts a page of older events in front. The server gives them newest first. */
  prepend(page: Event[]): void {
    const made: Item[] = [];
    const newer = { unread: this.unread, reads: this.reads, first: this.newest === 0, retry: this.retries.open };
    [this.unread, this.reads, this.retries.open] = [[], [], undefined];
    this.pageFrom = page.at(-1)?.id ?? 0;
    for (const e of [...page].reverse()) {
      if (e.id >= this.oldest) continue;
      this.fold(e, made);
    }
    if (!newer.first) {
      this.readLater(made, newer.reads);
      this.unread = newer.unread;
      this.retries.join(made, this.items[0]);
      this.retries.open = newer.retry;
    }
    this.reads.push(...newer.reads);
    if (page[0]) {
      this.oldest = Math.min(this.oldest, this.pageFrom);
      this.newest = Math.max(this.newest, page[0].id);
    }
    this.items.unshift(...made);
    this.moveStreamToCall();
    this.hide();
    this.version++;
  }

  /** append puts a new event at the end. */
  append(e: Event): void {
    if (e.id <= this.newest) return;
    this.newest = e.id;
    this.oldest = Math.min(this.oldest, e.id);
    this.status.note(e);
    this.fold(e, this.items);
    if (e.kind === "restored") this.hide();
    this.version++;
  }

  /** dropOldest drops items to save memory; they are read again when the person scrolls there. */
  dropOldest(count: number): void {
    // A message that was moved to where the agent read it is older than the items above it.
    while (count < this.items.length - 1 && this.items[count]!.joined) count++;
    const dropped = this.items.splice(0, count);
    this.oldest = this.items[0]?.id || this.oldest;
    this.reads = this.reads.filter((r) => r.id >= this.oldest);
    for (const item of dropped) {
      this.byEvent.delete(item.id);
      this.byCall.delete(item.callId);
      // A result that stays is not read again together with its call.
      if (item.result && item.result.id > this.oldest) this.orphans.set(item.id, item.result);
    }
    this.version++;
  }

  /** addDelta adds a piece of an answer, or of the output of a running command. */
  addDelta(d: Delta): void {
    const running = this.byCall.get(d.call);
    if (running) {
      if (running.result) return;
      running.stream ??= new StreamedText();
      if (running.stream.add(d.offset, d.text ?? "")) running.liveOutput = running.stream.text;
      return;
    }
    if (this.stream?.callId !== d.call) {
      this.dropStream();
      const item = new Item(`c${d.call}`, "agent", "message", 0, now());
      item.callId = d.call;
      item.streaming = true;
      item.stream = new StreamedText();
      this.stream = item;
      this.items.push(item);
      this.version++;
    }
    const s = this.stream!;
    if (s.stream!.add(d.offset, d.text ?? "")) s.text = s.stream!.text;
  }

  /** moveStreamToCall takes pieces for output that came before their call and looked like an answer. */
  private moveStreamToCall(): void {
    const call = this.stream && this.byCall.get(this.stream.callId);
    if (!call) return;
    if (!call.result) {
      call.stream = this.stream!.stream;
      call.liveOutput = call.stream?.text ?? "";
    }
    this.dropStream();
  }

  /** dropStream removes the answer that is being written: an event has it now, or it is given up. */
  private dropStream(): void {
    if (!this.stream) return;
    const at = this.items.lastIndexOf(this.stream);
    if (at >= 0) this.items.splice(at, 1);
    this.stream = undefined;
    this.version++;
  }

  /** cutStream leaves an unfinished answer on the page: the person may be reading it. */
  private cutStream(at: number): void {
    const item = this.stream;
    if (!item?.text.trim()) return this.dropStream();
    item.streaming = false;
    item.cutOff = true;
    item.id = at;
    this.stream = undefined;
  }

  /** breakOff removes what a failed call had written: the call is made again or a card says why not, and the history does not have it. */
  private breakOff({ payload: { call, class: why, text } }: EventOf<"model_failed">): void {
    if (!text && why !== "cancelled" && !this.aside.has(call)) this.dropStream();
  }

  private fold(e: Event, to: Item[]): void {
    for (const m of means(e)) {
      this.read(m, to);
      if (m.kind === "model_failed" && to === this.items) this.breakOff(m);
      if (this.retries.fold(m, to)) continue;
      const state = stateOf(m);
      if (state) this.stateChanged(m, to, ...state);
      else this.foldOne(m, to);
    }
  }

  /** read moves messages that were sent during a turn to where the agent reads them. */
  private read(e: Event, to: Item[]): void {
    const read = readBy(e);
    if (!read) return;
    this.reads.push(read);
    for (const item of this.unread) {
      if (item.id > read.upTo) continue;
      item.unread = false;
      if (read.began) continue;
      item.joined = true;
      const at = to.lastIndexOf(item);
      if (at >= 0) this.push(to.splice(at, 1)[0]!, to);
    }
    this.unread = this.unread.filter((item) => item.unread);
  }

  /** readLater is read for messages of an older page that the agent read on a newer one. */
  private readLater(made: Item[], reads: Read[]): void {
    for (const item of this.unread) {
      const read = reads.find((r) => r.id > item.id && r.upTo >= item.id);
      if (!read) continue;
      item.unread = false;
      if (read.began) continue;
      item.joined = true;
      made.splice(made.indexOf(item), 1);
      const at = this.items.findIndex((i) => i.id > read.id);
      this.items.splice(at < 0 ? this.items.length : at, 0, item);
    }
  }

  /** Whether items may be hidden by restores. */
  get hides(): boolean {
    return this.restores.length > 0;
  }

  /** hide marks the items that restores have hidden from the agent. */
  private hide(): void {
    if (this.restores.length === 0) return;
    const seen = visible(this.restores);
    let by: Item | undefined;
    for (const item of this.items.toReversed()) {
      const hidden = item.id !== 0 && !within(seen, item.id);
      if (!hidden && item.event?.kind === "restored" && item.event.payload.conversation) {
        by = item;
        [by.hides, by.firstHidden] = [0, ""];
      }
      item.hiddenBy = hidden ? by : undefined;
      if (!item.hiddenBy || !by || item.event?.kind === "restored") continue; // notices of earlier restores are not counted
      by.hides++;
      if (item.kind === "user") by.firstHidden = item.text;
    }
  }

  private foldOne(e: Event, to: Item[]): void {
    switch (e.kind) {
      case "user_said":
        return this.addMessage(e, "user", e.payload.text, to);
      case "model_asked":
        if (e.payload.purpose) this.aside.add(e.payload.call);
        this.status.useModel(e.payload.model);
        return;
      case "model_answered":
        return this.modelAnswered(e, to);
      case "model_failed":
        return this.modelFailed(e, to);
      case "tool_called":
        return this.toolCalled(e, to);
      case "command_typed":
        this.addCall(e, "command", commandDisplay, { command: e.payload.command }, to);
        return;
      case "tool_returned":
        return this.toolReturned(e, to);
      case "command_ended":
        return this.addResult(resultOf(e), e.payload.cause, "command", commandDisplay, {}, to);
      case "set_up":
        return this.addResult(resultOf(e), 0, "command", commandDisplay, {}, to);
      case "recalled":
        return this.recalled(e, to);
      case "withdrawn":
        return this.withdraw(e.payload.messages ?? [], to);
      case "condensed":
        this.compactEnded(e.id, to);
        return void this.addNotice(e, e.kind, e.payload.summary, to);
      case "nudged":
        return void this.addNotice(e, e.kind, e.payload.text, to);
      case "noted":
        if (e.payload.id === "STATUS$COMPACT_FAILED") this.compactEnded(e.id, to);
        return void this.addNotice(e, noticeOf[e.payload.id] ?? (e.payload.error ? "failure" : "note"), e.payload.message, to);
      case "overridden":
        return this.overridden(e, to);
      case "restored":
        this.lastRestored = Math.max(this.lastRestored, e.id);
        if (e.payload.conversation) this.restored({ id: e.id, action: e.payload.action as Restore["action"], point: e.payload.point });
        return void this.addNotice(e, e.kind, "", to);
      case "compact_asked":
        if (this.compacted.some((id) => id > e.id)) return; // the summary is on a newer page
        return void this.addNotice(e, e.kind, e.payload.instructions ?? "", to);
      case "checked_out":
      case "trust_set":
      case "egress_set":
      case "request_opened":
        return void this.addNotice(e, e.kind, "", to);
      case "checkpointed":
        this.checkpoints = true;
        return;
      default:
        if (to === this.items) this.status.follow(e);
    }
  }

  private toolCalled(e: EventOf<"tool_called">, to: Item[]): void {
    const { id, name, display, thought = "", risk, awaits } = e.payload;
    const args = fields(e.payload.args);
    this.status.setUsage(e);
    if (display.content === "hidden") return;
    if (display.content === "checklist") this.status.setTasks(e.id, tasks(args));
    // Pieces of its output may have arrived before the call, and look like an answer.
    const early = id && to === this.items && this.stream?.callId === id ? this.stream.stream : undefined;
    if (to === this.items) this.dropStream();
    const item = this.addCall(e, name, display, args, to);
    item.risk = risk;
    item.callId = id;
    item.stream = early;
    item.liveOutput = early?.text ?? "";
    item.text = display.content === "thought" ? [thought, text(args, display.main)].filter(Boolean).join("\n") : thought;
    item.awaitsApproval = !item.result && !!awaits;
    // Also if it has a result: a late piece of its output is not an answer.
    if (id) this.byCall.set(id, item);
  }

  /** addCall adds a call, with its result if that was read before. */
  private addCall(e: Event, name: string, display: Display, args: Fields, to: Item[]): Item {
    const item = new Item(`e${e.id}`, "tool", name, e.id, Date.parse(e.time));
    item.args = args;
    item.display = display;
    item.result = this.orphans.get(e.id);
    this.orphans.delete(e.id);
    this.byEvent.set(e.id, item);
    to.push(item);
    return item;
  }

  private modelAnswered(e: EventOf<"model_answered">, to: Item[]): void {
    const { text = "", tool_calls = [], purpose } = e.payload;
    if (purpose) return; // a title or a summary
    this.status.setUsage(e);
    // The text beside calls is shown with the first of them.
    if (text && tool_calls.length === 0) this.addMessage(e, "agent", text, to);
  }

  /** modelFailed shows what an interrupted answer had said, or why the model did not answer. */
  private modelFailed(e: EventOf<"model_failed">, to: Item[]): void {
    const { call, class: why, message = "", text } = e.payload;
    if (this.aside.has(call)) return; // the agent goes on without it, or another notice says why not
    if (text) this.addMessage(e, "agent", `${text}\n\n[${message.replace(/\.$/, "")}]`, to);
    else if (why !== "cancelled" && why !== "owner_lost") this.addNotice(e, "failure", message, to);
  }

  private restored(r: Restore): void {
    if (!this.restores.some((known) => known.id === r.id)) this.restores = [...this.restores, r].sort((a, b) => a.id - b.id);
  }

  /** withdraw removes messages that the agent never read. */
  private withdraw(messages: number[], to: Item[]): void {
    for (const id of messages) this.withdrawn.add(id);
    this.unread = this.unread.filter((i) => !messages.includes(i.id));
    const gone = (i: Item) => i.kind === "user" && messages.includes(i.id);
    for (const list of new Set([to, this.items])) for (let i = list.length - 1; i >= 0; i--) if (gone(list[i]!)) list.splice(i, 1);
  }

  private addMessage(e: EventOf<"user_said" | "model_answered" | "model_failed">, kind: Kind, words: string, to: Item[]): void {
    // The message was moved to a newer page, or withdrawn there.
    if (kind === "user" && (this.byEvent.has(e.id) || this.withdrawn.has(e.id))) return;
    const stream = kind === "agent" && to === this.items ? this.stream : undefined;
    // An answer that was being written stays the same item, so that it does not jump.
    const item = stream ?? new Item(`e${e.id}`, kind, "message", e.id, Date.parse(e.time));
    item.id = e.id;
    item.at = Date.parse(e.time);
    item.text = words;
    if (e.kind === "user_said") {
      item.images = e.payload.images ?? [];
      item.files = e.payload.files ?? [];
      item.unread = true;
      this.unread.push(item);
      this.byEvent.set(e.id, item);
    }
    item.streaming = false;
    if (stream) this.stream = undefined;
    else this.push(item, to);
  }

  /** push puts an item last, but before an answer that is being written. */
  private push(item: Item, to: Item[]): void {
    if (to === this.items && this.stream && to.at(-1) === this.stream) to.splice(-1, 0, item);
    else to.push(item);
  }

  private toolReturned(e: EventOf<"tool_returned">, to: Item[]): void {
    const { name, display, cause, outcome } = e.payload;
    // The call says everything, or nothing is shown at all.
    if (outcome === "ok" && (display.content === "message" || display.content === "hidden")) return;
    const args = fields(e.payload.args);
    const result = resultOf(e);
    if (display.content === "checklist" && !result.failed) this.status.setTasks(e.id, tasks(result.details) ?? tasks(args));
    this.addResult(result, cause, name, display, args, to);
  }

  /** addResult joins a result and its call, or shows a result without a call on its own. */
  private addResult(result: Result, cause: number, name: string, display: Display, args: Fields, to: Item[]): void {
    const call = this.byEvent.get(cause);
    if (call) {
      call.result = result;
      call.liveOutput = "";
      call.awaitsApproval = false;
      call.stream = undefined;
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
    this.push(item, to);
  }

  private recalled(e: EventOf<"recalled">, to: Item[]): void {
    const instructions = text(fields(e.payload.details), "conversation_instructions");
    if (instructions) this.addNotice(e, "instructions", instructions, to);
    const known = e.payload.items ?? [];
    if (known.length > 0) this.addNotice(e, "recall", known.map((k) => k.name).join(", "), to);
  }

  /** overridden shows what was changed: plan mode, or the model and the budget. */
  private overridden(e: EventOf<"overridden">, to: Item[]): void {
    const plan = !!e.payload.plan;
    const toggled = plan !== this.plan && (plan || e.id > this.planFrom);
    if (e.id > this.planFrom) [this.plan, this.planFrom] = [plan, e.id];
    this.addNotice(e, toggled ? (plan ? "plan.on" : "plan.off") : e.kind, "", to);
  }

  /** compactEnded removes the notice that the history is being compacted. */
  private compactEnded(id: number, to: Item[]): void {
    this.compacted.push(id);
    const at = to.findLastIndex((i) => i.name === "compact_asked");
    if (at >= 0) to.splice(at, 1);
  }

  private addNotice(e: Event, name: string, words: string, to: Item[]): Item {
    const item = new Item(`${name}${e.id}`, "notice", name, e.id, Date.parse(e.time));
    item.text = words;
    if (!words) item.event = e;
    this.push(item, to);
    return item;
  }

  /** endApprovals: no call waits any longer, and the approved one starts now. */
  private endApprovals(at: number): void {
    for (const item of this.byCall.values()) {
      if (!item.awaitsApproval) continue;
      item.awaitsApproval = false;
      item.startedAt = at;
    }
  }

  private stateChanged(e: Event, to: Item[], state: string, reason = ""): void {
    if (this.status.become(e.id, state, reason, e.kind === "turn_ended") && to === this.items) {
      if (cuts.has(state)) this.cutStream(e.id);
      else if (state !== "running" && state !== "loading") this.dropStream();
    }
    // A state from an older page says nothing about the calls of newer ones.
    if (state !== "awaiting_user_confirmation" && e.id === this.status.stateFrom) this.endApprovals(Date.parse(e.time));
    // A pause that ends at once only made room for a message.
    const last = to.at(-1);
    if (e.kind === "resumed" && last?.name === "state.paused" && last.id === e.id - 1) to.pop();
    if (e.kind === "stopped" || e.kind === "failed") this.compactEnded(e.id, to);
    // While the agent waits for the limit, the card of the retries says so.
    if (!noticed.has(state) || (state === "rate_limited" && e.kind === "state_changed")) return;
    // One failure is one card: the end of the turn repeats what the model call said.
    const failed = state === "error" || state === "rate_limited";
    if (failed && last?.name === "failure") {
      to.pop();
      if (!reason || /^[A-Z_]+\$/.test(reason)) reason = last.text;
    }
    const n = failed ? this.retries.remove(to) : 0;
    const item = this.addNotice(e, `state.${state}`, reason, to);
    item.event = e;
    if (n > 0) item.retry = { phase: "ended", n, of: n, at: 0 };
  }
}
