// Comments on lines, collected until they are sent to the agent as one message. They are
// kept in the browser, so that they survive a reload.
import { t } from "../lib/i18n.svelte";
import { browserStorage } from "../lib/storage";

export interface LineComment {
  path: string;
  line: number;
  /** The last line, the same as line for one. */
  end: number;
  /** Whether the lines are those of the file before the change. */
  before: boolean;
  /** The lines themselves: the file may be another by the time the agent reads this. */
  quote: string;
  text: string;
}

const longestQuote = 400;

/** place is the reference that people and agents read. */
export const place = (c: Pick<LineComment, "path" | "line" | "end">) => `${c.path}:${c.line}${c.end > c.line ? `-${c.end}` : ""}`;

/** message is what the agent is sent. */
export function message(list: LineComment[]): string {
  const parts = list.map((c, i) => {
    const quote = c.quote
      .slice(0, longestQuote)
      .split("\n")
      .map((l) => `   > ${l}`)
      .join("\n");
    const text = c.text.trim().replaceAll("\n", "\n   ");
    return `${i + 1}. \`${place(c)}\`${c.before ? ` (${t("review.before")})` : ""}\n${quote}\n\n   ${text}`;
  });
  return `${t("review.message")}\n\n${parts.join("\n\n")}`;
}

export class Comments {
  list = $state<LineComment[]>([]);
  /** The comment that is being written. */
  draft = $state<LineComment | undefined>();
  private readonly key: string;

  constructor(readonly id: string) {
    this.key = `deckhand-comments-${id}`;
    this.list = parse(browserStorage.get(this.key));
  }

  begin(at: Omit<LineComment, "text">): void {
    this.draft = { ...at, text: "" };
  }

  edit(comment: LineComment): void {
    this.draft = { ...comment };
    this.remove(comment);
  }

  add(): void {
    if (!this.draft?.text.trim()) return;
    this.list = [...this.list, this.draft].sort((a, b) => (a.path === b.path ? a.line - b.line : a.path < b.path ? -1 : 1));
    this.draft = undefined;
    this.save();
  }

  remove(comment: LineComment): void {
    this.list = this.list.filter((c) => c !== comment);
    this.save();
  }

  clear(): void {
    this.list = [];
    this.save();
  }

  /** lines are those of a file that have a comment. */
  lines(path: string, before: boolean): Set<number> {
    return new Set(this.list.filter((c) => c.path === path && c.before === before).map((c) => c.line));
  }

  private save(): void {
    if (this.list.length) browserStorage.set(this.key, JSON.stringify(this.list));
    else browserStorage.remove(this.key);
  }
}

/** parse reads what was stored; what is not understood is left out. */
export function parse(stored: string | null): LineComment[] {
  try {
    const all: unknown = JSON.parse(stored ?? "[]");
    return Array.isArray(all)
      ? all.filter((c) => typeof c?.path === "string" && typeof c?.line === "number" && typeof c?.text === "string")
      : [];
  } catch {
    return [];
  }
}

const known = new Map<string, Comments>();

/** commentsOf are those of a conversation, the same for all panels. */
export function commentsOf(id: string): Comments {
  let found = known.get(id);
  if (!found) known.set(id, (found = new Comments(id)));
  return found;
}
