// A conversation while it is open on the page: it loads history as far as the person scrolls,
// follows new events, and sends what the person does.
import { run } from "../composer/routes";
import { ApiError } from "../lib/api";
import { nextTask } from "../lib/next-task";
import { tabStorage } from "../lib/storage";
import type { Event } from "../lib/events";
import { follow } from "../lib/follow";
import { session } from "../lib/session.svelte";
import { toasts } from "../lib/toasts.svelte";
import { FrameQueue } from "./frame-queue";
import type { Item } from "./item.svelte";
import { Log } from "./log.svelte";
import * as routes from "./routes";
import type { Status } from "./status.svelte";

/** How many items are kept in memory, and how many are dropped at once above that. */
const maxItems = 4000;
const dropped = 1000;

/** States outside of turns. In others, a message is queued until the agent reads it. */
const resting = new Set(["loading", "ready", "awaiting_user_input", "finished", "error", "rejected", "stopped"]);

/** The comparison of the compare view: from the files of another conversation ("" is this one) to the files of this one. Event 0 is now. */
export interface Comparing {
  event: number;
  other: string;
  otherEvent: number;
}

/** States in which the agent works. */
export const working = new Set(["running", "loading", "user_confirmed", "user_rejected"]);

/** Files that both the agent and the user changed, and the user's choice; undefined is Cancel. */
export interface Conflict {
  files: routes.RestoreConflict;
  choose(own: "keep" | "overwrite" | undefined): void;
}

export class OpenConversation {
  log = new Log();
  info = $state.raw<routes.Conversation | undefined>();
  /** Why the conversation cannot be shown. */
  problem = $state("");
  /** Whether the conversation does not exist, or this user has no access to it. */
  missing = $state(false);
  connected = $state(true);
  deleted = $state(false);
  /** Whether there are older events than those that were read. */
  more = $state(false);
  reading = $state(false);
  /** Whether older events could not be loaded; the person can retry. */
  failed = $state(false);
  loaded = $state(false);
  waiting = $state.raw<routes.Waiting[]>([]);
  approvals = $state.raw<routes.Approval[]>([]);
  overrides = $state.raw<routes.Overrides | undefined>();
  /** Whether the repository is trusted; undefined until it is known, or without a repository. */
  trust = $state.raw<routes.Trust | undefined>();
  /** Whether the dialog for model and budget is open. */
  choosing = $state(false);
  /** The initial values of the attempts dialog; undefined while it is closed. */
  trying = $state.raw<{ task?: string; event?: number } | undefined>();
  /** Whether the bar that searches the history is open. */
  searching = $state(false);
  /** The words that the search bar takes over. */
  sought = $state("");
  /** The draft in the message box, stored for this tab. */
  draft = $state("");
  /** The text that a restore put into the message box. */
  putBack = "";
  /** The comparison in the compare view; undefined while it is closed. */
  comparing = $state.raw<Comparing | undefined>();
  /** The question what to do with files that a restore would overwrite. */
  conflict = $state.raw<Conflict | undefined>();
  /** Attachments of the next message. They are here because on a small screen a look at the workspace removes the form. */
  pictures = $state.raw<{ name: string; url: string }[]>([]);
  files = $state.raw<File[]>([]);
  private unfollow: () => void = () => {};
  private frames = new FrameQueue();
  private closed = false;
  private asking: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly id: string) {
    this.draft = tabStorage.get(this.draftName) ?? "";
  }

  /** keepDraft stores the draft. Call it in $effect, so that it runs whenever the draft changes. */
  keepDraft(): void {
    if (this.draft) tabStorage.set(this.draftName, this.draft);
    else tabStorage.remove(this.draftName);
  }

  private get draftName(): string {
    return `deckhand-draft-${this.id}`;
  }

  /** Whether a turn is in progress, so that new messages are queued. */
  get inTurn(): boolean {
    const { state, turnEnded } = this.status;
    return !this.stopped && !resting.has(state) && !(state === "rate_limited" && turnEnded);
  }

  /** Whether the agent waits for the provider's rate limit and then tries again. */
  get waitsForLimit(): boolean {
    return this.inTurn && this.status.state === "rate_limited";
  }

  /** Whether the agent works, so that it can be paused. */
  get works(): boolean {
    return !this.stopped && (working.has(this.status.state) || this.waitsForLimit);
  }

  /** queued are the messages that the agent reads after the step in progress. */
  get queued(): routes.Waiting[] {
    return this.inTurn ? this.waiting : [];
  }

  /** Whether the conversation is closed until it is started again. */
  get stopped(): boolean {
    return this.info?.status === "STOPPED" || this.status.state === "stopped";
  }

  /** The model for the next reply. */
  get model(): string {
    return this.overrides?.llm_model ?? session.settings?.llm_model ?? "";
  }

  get status(): Status {
    return this.log.status;
  }

  /** shown returns the items of the feed, without queued messages and without items that a restore hides, unless they are expanded. */
  shown(): Item[] {
    const { inTurn, log } = this;
    return log.items.filter((i) => !(inTurn && i.unread) && (!log.hides || !i.hiddenBy || i.hiddenBy.open));
  }

  async open(): Promise<void> {
    this.problem = "";
    try {
      const [info, page] = await Promise.all([routes.conversation(this.id), routes.page(this.id)]);
      await nextTask();
      if (this.closed) return;
      this.info = info;
      this.status.state = info.agent_state;
      this.status.reason = info.reason ?? "";
      this.status.title = info.title;
      this.status.queue = info.queue ?? null;
      this.log.prepend(page.events);
      this.more = page.more;
      this.loaded = true;
      await nextTask();
      if (this.closed) return;
      this.listen();
      this.refresh();
      this.loadOverrides();
      this.loadTrust();
    } catch (err) {
      this.missing = err instanceof ApiError && err.status === 404;
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
      event: (e) => this.frames.add(() => this.happened(e)),
      delta: (d) => this.frames.add(() => this.log.addDelta(d)),
      queue: (place) => this.frames.add(() => (this.status.queue = place)),
      end: () => this.frames.add(() => (this.deleted = true)),
      connected: (yes) => this.connectionChanged(yes),
    });
  }

  private happened(e: Event): void {
    this.requeue(e);
    this.log.append(e);
    if (e.kind === "overridden") this.loadOverrides();
    if (e.kind === "trust_set") this.loadTrust();
  }

  /** requeue updates the queue from an event. The server has the complete queue. */
  private requeue(e: Event): void {
    const has = (id: number) => this.waiting.some((m) => m.event_id === id);
    if (e.kind === "user_said" && this.inTurn && !has(e.id)) {
      const { text, images } = e.payload;
      this.waiting = [...this.waiting, { event_id: e.id, content: text, image_urls: images ?? [], said_at: e.time }];
    } else if (e.kind === "withdrawn") this.waiting = this.waiting.filter((m) => !e.payload.messages?.includes(m.event_id));
    else if (e.kind === "model_asked" && !e.payload.purpose) this.waiting = this.waiting.filter((m) => m.event_id > e.payload.up_to);
  }

  /** loadOverrides loads the model and budget set for this conversation. */
  private loadOverrides(): void {
    routes
      .overrides(this.id)
      .then((o) => (this.overrides = o))
      .catch(quiet);
  }

  /** loadTrust loads whether the repository is trusted. */
  private loadTrust(): void {
    if (this.info?.selected_repository)
      routes
        .trust(this.id)
        .then((found) => (this.trust = found))
        .catch(quiet);
  }

  private connectionChanged(yes: boolean): void {
    const before = this.connected;
    this.connected = yes;
    if (before === yes) return;
    if (yes) this.refresh();
    // An expired login looks like a lost connection; an ordinary request finds out.
    else routes.conversation(this.id).catch(quiet);
  }

  /** older reads the page before the oldest event. */
  async older(): Promise<void> {
    if (!this.more || this.reading) return;
    this.reading = true;
    this.failed = false;
    try {
      const page = await routes.page(this.id, this.log.oldest);
      if (this.closed) return;
      this.log.prepend(page.events);
      this.more = page.more;
    } catch (err) {
      toasts.failed(err);
      this.failed = true;
    }
    this.reading = false;
  }

  /** trim drops items far above while the person looks at the newest. */
  trim(): void {
    if (this.log.items.length <= maxItems) return;
    this.log.dropOldest(dropped);
    this.more = true;
  }

  /** refresh loads what events do not tell. Several calls in a short time are one. */
  refresh(): void {
    clearTimeout(this.asking);
    this.asking = setTimeout(() => void this.load(), 150);
  }

  private async load(): Promise<void> {
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

  /** store puts files into the workspace and gives their paths. */
  private async store(files: File[]): Promise<string[]> {
    if (files.length === 0) return [];
    const stored = await routes.upload(this.id, files);
    const skipped = stored.skipped_files ?? [];
    if (skipped.length > 0) throw new Error(skipped.map((s) => `${s.name}: ${s.reason}`).join("\n"));
    return stored.uploaded_files ?? [];
  }

  /** say sends a message; files are stored in the workspace first. */
  async say(text: string, images: string[], files: File[]): Promise<void> {
    await routes.say(this.id, text, images, await this.store(files));
    this.refresh();
  }

  /** runCommand sends the text of a command of the server or the repository. */
  async runCommand(name: string, args: string, images: string[], files: File[]): Promise<void> {
    await run(this.id, name, args, images, await this.store(files));
    this.refresh();
  }

  /** setPlanMode makes the agent read-only until a plan is approved, or ends that. */
  async setPlanMode(plan_mode: boolean): Promise<void> {
    this.overrides = await routes.override(this.id, { plan_mode });
  }

  async setModel(llm_model: string): Promise<void> {
    this.overrides = await routes.override(this.id, { llm_model });
  }

  /** attempt runs an action and shows a toast if it fails. */
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

/** A failed request in the background is ignored: the banner says that the connection is lost. */
function quiet(err: unknown): void {
  if (!(err instanceof ApiError) && !(err instanceof TypeError)) throw err;
}
