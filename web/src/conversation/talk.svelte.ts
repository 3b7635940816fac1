// One conversation while it is on the screen: it reads history as far as somebody scrolls,
// follows what is new, and does what the person asks.
import { ApiError } from "../lib/api";
import { breathe } from "../lib/breathe";
import type { Event } from "../lib/events";
import { follow } from "../lib/follow";
import { toasts } from "../lib/toasts.svelte";
import { Log } from "./log.svelte";
import * as routes from "./routes";

/** What is kept while one looks at the newest: more is read again when it is wanted. */
const kept = 4000;
const dropped = 1000;

/** Work on new events is cut into pieces that leave the page responsive. */
const slice = 12;

export const working = new Set(["running", "loading", "user_confirmed", "user_rejected"]);

export class Talk {
  log = new Log();
  info = $state.raw<routes.Conversation | undefined>();
  /** Why the conversation cannot be shown. */
  problem = $state("");
  connected = $state(true);
  deleted = $state(false);
  /** Whether there are older events than those that were read. */
  more = $state(false);
  reading = $state(false);
  /** Whether older events could not be read; asking again is up to the person. */
  failed = $state(false);
  loaded = $state(false);
  waiting = $state.raw<routes.Waiting[]>([]);
  approvals = $state.raw<routes.Approval[]>([]);
  overrides = $state.raw<routes.Overrides | undefined>();
  /** Whether the repository is trusted; undefined until it is known, or without a repository. */
  trust = $state.raw<routes.Trust | undefined>();
  /** Whether the person is choosing a model and a budget. */
  choosing = $state(false);
  /** What is to go with the next message: it outlives a look at the workspace on a small screen. */
  pictures = $state.raw<{ name: string; url: string }[]>([]);
  files = $state.raw<File[]>([]);
  private unfollow: () => void = () => {};
  private todo: (() => void)[] = [];
  private planned = false;
  private closed = false;
  private asking: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly id: string) {}

  async open(): Promise<void> {
    this.problem = "";
    try {
      const [info, page] = await Promise.all([routes.conversation(this.id), routes.page(this.id)]);
      await breathe();
      if (this.closed) return;
      this.info = info;
      this.log.state = info.agent_state;
      this.log.reason = info.reason ?? "";
      this.log.title = info.title;
      this.log.before(page.events);
      this.more = page.more;
      this.loaded = true;
      await breathe();
      if (this.closed) return;
      this.listen();
      this.refresh();
      this.override();
      this.rate();
    } catch (err) {
      this.problem = err instanceof Error ? err.message : String(err);
    }
  }

  close(): void {
    this.closed = true;
    this.unfollow();
    clearTimeout(this.asking);
  }

  private listen(): void {
    this.unfollow = follow(this.id, this.log.newest, {
      event: (e) => this.later(() => this.happened(e)),
      delta: (d) => this.later(() => this.log.delta(d)),
      end: () => this.later(() => (this.deleted = true)),
      connected: (yes) => this.reconnected(yes),
    });
  }

  private happened(e: Event): void {
    this.log.add(e);
    if (e.kind === "overridden") this.override();
    if (e.kind === "trust_set") this.rate();
  }

  /** override asks which model and budget hold here: another window may have changed them. */
  private override(): void {
    routes
      .overrides(this.id)
      .then((o) => (this.overrides = o))
      .catch(quiet);
  }

  /** rate asks whether the repository is trusted. */
  private rate(): void {
    if (this.info?.selected_repository)
      routes
        .trust(this.id)
        .then((found) => (this.trust = found))
        .catch(quiet);
  }

  private reconnected(yes: boolean): void {
    const before = this.connected;
    this.connected = yes;
    if (before === yes) return;
    if (yes) this.refresh();
    // A login that ran out looks like a lost connection; an ordinary question tells.
    else routes.conversation(this.id).catch(quiet);
  }

  /** later does something with the next picture, together with all else that came in. */
  private later(what: () => void): void {
    this.todo.push(what);
    this.plan();
  }

  private plan(): void {
    if (this.planned) return;
    this.planned = true;
    // A page that is not looked at draws nothing, and still wants to know.
    if (document.hidden) setTimeout(() => this.flush(), 50);
    else requestAnimationFrame(() => this.flush());
  }

  private flush(): void {
    this.planned = false;
    const until = performance.now() + slice;
    let done = 0;
    try {
      while (done < this.todo.length && performance.now() < until) this.todo[done++]!();
    } finally {
      // What cannot be shown is left out, and does not keep what comes after it from being shown.
      this.todo.splice(0, done);
      if (this.todo.length > 0) this.plan();
    }
  }

  /** older reads the page before the oldest event. */
  async older(): Promise<void> {
    if (!this.more || this.reading) return;
    this.reading = true;
    this.failed = false;
    try {
      const page = await routes.page(this.id, this.log.oldest);
      if (this.closed) return;
      this.log.before(page.events);
      this.more = page.more;
    } catch (err) {
      toasts.failed(err);
      this.failed = true;
    }
    this.reading = false;
  }

  /** trim lets go of what is far above, for as long as one looks at the newest. */
  trim(): void {
    if (this.log.items.length <= kept) return;
    this.log.forget(dropped);
    this.more = true;
  }

  /** refresh asks for all that is not in the events, soon, and once for many reasons. */
  refresh(): void {
    clearTimeout(this.asking);
    this.asking = setTimeout(() => void this.ask(), 150);
  }

  private async ask(): Promise<void> {
    if (this.closed) return;
    await Promise.all([
      routes
        .conversation(this.id)
        .then((c) => (this.info = c))
        .catch(quiet),
      routes
        .approvals(this.id)
        .then((a) => (this.approvals = a.pending ?? []))
        .catch(quiet),
      routes
        .queue(this.id)
        .then((q) => (this.waiting = q.messages ?? []))
        .catch(quiet),
    ]);
  }

  /** say sends a message; files are stored in the workspace first. */
  async say(text: string, images: string[], files: File[]): Promise<void> {
    let paths: string[] = [];
    if (files.length > 0) {
      const stored = await routes.upload(this.id, files);
      paths = stored.uploaded_files ?? [];
      const skipped = stored.skipped_files ?? [];
      if (skipped.length > 0) throw new Error(skipped.map((s) => `${s.name}: ${s.reason}`).join("\n"));
    }
    await routes.say(this.id, text, images, paths);
    this.refresh();
  }

  /** attempt does something and says what went wrong. */
  async attempt(what: () => Promise<unknown>): Promise<boolean> {
    try {
      await what();
      this.refresh();
      return true;
    } catch (err) {
      toasts.failed(err);
      return false;
    }
  }
}

/** What is asked for on the side may fail: the connection's own banner says so. */
function quiet(err: unknown): void {
  if (!(err instanceof ApiError) && !(err instanceof TypeError)) throw err;
}
