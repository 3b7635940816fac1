// What is being written, kept in this tab so that a reload loses nothing.
import { tabStorage } from "../lib/storage";
import type { Attachment } from "./attach";
import type { Repository } from "./git";

interface Written {
  text: string;
  instructions: string;
  repository: Repository | null;
  branch: string;
  model: string;
  budget: string;
  /** Whether the rarely used fields are shown. */
  more: boolean;
}

const empty: Written = { text: "", instructions: "", repository: null, branch: "", model: "", budget: "", more: false };

// A browser gives a page some 5 million characters; words come before files.
const roomForFiles = 4_000_000;

export class Draft {
  text = $state(empty.text);
  instructions = $state(empty.instructions);
  repository = $state.raw(empty.repository);
  branch = $state(empty.branch);
  model = $state(empty.model);
  budget = $state(empty.budget);
  more = $state(empty.more);
  attachments = $state.raw<Attachment[]>([]);
  /** Whether the attachments would still be here after a reload. */
  filesKept = $state(true);

  private readonly place: string;

  constructor(user: string) {
    this.place = `deckhand-draft:${user}`;
    this.put(parsed<Partial<Written>>(this.place) ?? {});
    this.attachments = parsed<Attachment[]>(this.place + ":files") ?? [];
  }

  get hasContent(): boolean {
    return this.text.trim() !== "" || this.attachments.length > 0;
  }

  /** keep stores the words; for $effect, which calls it whenever they change. */
  keep(): void {
    const { text, instructions, repository, branch, model, budget, more } = this;
    store(this.place, { text, instructions, repository, branch, model, budget, more });
  }

  /** keepFiles stores the attachments, which are large and seldom change. */
  keepFiles(): void {
    const size = this.attachments.reduce((sum, a) => sum + a.url.length, 0);
    this.filesKept = size === 0 || (size <= roomForFiles && store(this.place + ":files", this.attachments));
    if (size === 0 || !this.filesKept) tabStorage.remove(this.place + ":files");
  }

  /** clear is for when it was sent. The repository stays: the next task is often for the same. */
  clear(): void {
    const { repository, branch } = this;
    this.put({ repository, branch });
    this.attachments = [];
    this.keep();
    this.keepFiles();
  }

  private put(written: Partial<Written>): void {
    const all = { ...empty, ...written };
    this.text = all.text;
    this.instructions = all.instructions;
    this.repository = all.repository;
    this.branch = all.branch;
    this.model = all.model;
    this.budget = all.budget;
    this.more = all.more;
  }
}

/** addToDraft adds text to the draft of the task, for a form that is not shown yet. */
export function addToDraft(user: string, text: string): void {
  const draft = new Draft(user);
  draft.text = [draft.text.trim(), text].filter(Boolean).join("\n\n");
  draft.keep();
}

function parsed<T>(place: string): T | undefined {
  try {
    return JSON.parse(tabStorage.get(place) ?? "null") ?? undefined;
  } catch {
    return undefined; // of another version
  }
}

/** store is false if there is no room. */
const store = (place: string, value: unknown) => tabStorage.set(place, JSON.stringify(value));
