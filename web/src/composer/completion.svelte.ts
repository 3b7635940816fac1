// What the message box offers while the person types @ or a slash.
import { router } from "../lib/router.svelte";
import type { IconName } from "../ui/Icon.svelte";
import * as routes from "./routes";
import { mentionOf } from "./text";
import { nearest, rank, type Trigger } from "./trigger";

export interface Offer {
  id: string;
  icon: IconName;
  name: string;
  note: string;
  /** The group that it is listed in. */
  group?: "builtin" | "settings" | "repository";
  /** What is put into the message. */
  insert: string;
  /** What happens in place of it: a command of the page that needs no arguments. */
  run?: () => void;
}

/** A command that the page carries out itself. */
export interface PageCommand {
  name: string;
  note: string;
  /** Without it, the command takes arguments and runs when it is sent. */
  run(args: string): void | Promise<void>;
  takesArguments?: boolean;
  /** The arguments that a command takes which is usually run without. */
  optional?: RegExp;
}

const most = 12;
const pause = 120;

export class Completion {
  offers = $state.raw<Offer[]>([]);
  at = $state(0);
  /** Whether an answer is on its way. */
  busy = $state(false);
  trigger = $state.raw<Trigger | undefined>();
  private asked = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private custom: Promise<routes.Command[]> | undefined;
  private tasks: Promise<routes.Task[]> | undefined;

  constructor(
    private readonly id: string,
    private readonly own: () => PageCommand[],
  ) {}

  get open(): boolean {
    return this.trigger !== undefined && (this.offers.length > 0 || this.busy);
  }

  close(): void {
    clearTimeout(this.timer);
    this.asked++;
    this.trigger = undefined;
    this.offers = [];
    this.busy = false;
    this.custom = undefined; // the repository's may change between two looks
  }

  /** show offers what fits to what is being typed. */
  show(trigger: Trigger | undefined): void {
    if (!trigger) return this.close();
    clearTimeout(this.timer);
    const mine = ++this.asked;
    this.trigger = trigger;
    this.busy = true;
    // What was offered for an earlier text and no longer fits must not be picked by a fast Enter.
    this.offers = this.offers.filter(
      (o) => Math.min(rank(o.name, trigger.query), trigger.kind === "command" ? Infinity : rank(o.note, trigger.query)) < Infinity,
    );
    this.at = Math.min(this.at, Math.max(this.offers.length - 1, 0));
    const find = async () => {
      const found = await (trigger.kind === "command" ? this.commands(trigger.query) : this.mentions(trigger.query));
      if (mine !== this.asked) return;
      this.offers = found;
      this.at = 0;
      this.busy = false;
    };
    this.timer = setTimeout(() => void find(), trigger.kind === "command" ? 0 : pause);
  }

  move(step: number): void {
    this.at = (this.at + step + this.offers.length) % Math.max(this.offers.length, 1);
  }

  /** known reports whether the server has a command, and the name of a similar command if there is none. */
  async known(name: string): Promise<{ found: boolean; near?: string | undefined }> {
    this.custom ??= routes.commands(this.id);
    const names = (await this.custom.finally(() => (this.custom = undefined))).map((c) => c.name);
    if (names.includes(name)) return { found: true };
    return { found: false, near: nearest(name, [...this.own().map((c) => c.name), ...names]) };
  }

  private async commands(query: string): Promise<Offer[]> {
    this.custom ??= routes.commands(this.id).catch(() => []); // those of the page are there at least
    const own = this.own();
    const names = new Set(own.map((c) => c.name));
    const all: Offer[] = own.map((c) => ({
      id: `own-${c.name}`,
      icon: "right",
      name: `/${c.name}`,
      note: c.note,
      group: "builtin",
      insert: `/${c.name}`,
      ...(c.takesArguments ? {} : { run: () => void c.run("") }),
    }));
    for (const c of await this.custom) {
      if (names.has(c.name)) continue;
      const hint = c.argument_hint ? `${c.argument_hint} · ` : "";
      all.push({
        id: `file-${c.name}`,
        icon: c.file ? "file" : "right",
        name: `/${c.name}`,
        note: hint + c.description,
        group: c.source,
        insert: `/${c.name}`,
      });
    }
    return inGroups(
      best(all, query, (o) => o.name.slice(1), Infinity),
      query,
    );
  }

  private async mentions(query: string): Promise<Offer[]> {
    this.tasks ??= routes.tasks().catch(() => []);
    // What cannot be looked at has nothing to offer: the workspace may not exist yet.
    const [files, talks, tasks] = await Promise.all([
      routes.mentions(this.id, query).catch(() => []),
      query.length > 0 ? routes.conversations(query).catch(() => []) : Promise.resolve([]),
      this.tasks,
    ]);
    const out: Offer[] = files.map((m) => ({
      id: `${m.kind}-${m.path}-${m.line}`,
      icon: m.kind === "folder" ? "folder" : m.kind === "symbol" ? "terminal" : "file",
      name: m.name,
      note: m.kind === "symbol" ? `${m.path}:${m.line}` : m.path,
      insert: m.kind === "symbol" ? `${mentionOf(`${m.path}:${m.line}`)} (${m.name})` : mentionOf(m.path),
    }));
    for (const c of talks) {
      if (c.conversation_id === this.id) continue;
      const link = new URL(router.href(`/conversations/${c.conversation_id}`), location.href).href;
      out.push({ id: c.conversation_id, icon: "list", name: c.title, note: c.selected_repository ?? "", insert: `“${c.title}” (${link})` });
    }
    const issues = tasks.map((task): Offer => {
      const number = `${task.repo}#${task.issue_number}`;
      return {
        id: `${task.git_provider}-${number}-${task.task_type}`,
        icon: task.task_type === "OPEN_ISSUE" ? "bulb" : "branch",
        name: `#${task.issue_number} ${task.title}`,
        note: task.repo,
        insert: `${number} “${task.title}”`,
      };
    });
    return [...out, ...(query ? best(issues, query, (o) => o.name, most) : [])].slice(0, 2 * most);
  }
}

const order = ["builtin", "settings", "repository"] as const;

/** inGroups puts offers of a group together. The group of the best offer is first; without a best one, the order is fixed. */
export function inGroups(list: Offer[], query = ""): Offer[] {
  const groups = query ? [...new Set(list.map((o) => o.group))] : order;
  return groups.flatMap((group) => list.filter((o) => o.group === group));
}

function best(list: Offer[], query: string, name: (o: Offer) => string, most: number): Offer[] {
  return list
    .map((offer) => ({ offer, rank: rank(name(offer), query) }))
    .filter((x) => x.rank < Infinity)
    .sort((a, b) => a.rank - b.rank)
    .slice(0, most)
    .map((x) => x.offer);
}
