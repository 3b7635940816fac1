// Which conversations have news for the person. It is kept in this browser: looking at a
// conversation must not write to its log.
import { browserStorage } from "../lib/storage";

const place = "deckhand-seen";
const most = 500;

interface Stored {
  /** When this browser began to keep it: what is older counts as seen. */
  since: number;
  /** The newest event that was shown, by conversation, latest look last. */
  events: [id: string, event: number][];
}

interface Row {
  conversation_id: string;
  last_event_id: number;
  last_updated_at: string;
  status: string;
  agent_state: string;
}

/** While the agent works there is always news: it counts when it has stopped. */
const working = new Set(["loading", "running", "user_confirmed", "user_rejected", "rate_limited"]);

export class Seen {
  private events = $state.raw(new Map<string, number>());
  private since: number;

  constructor(now = Date.now()) {
    const stored = this.stored();
    this.events = new Map(stored?.events ?? []);
    this.since = stored?.since ?? now;
    if (!stored) this.keep();
    // Another tab may look at conversations too.
    if (typeof addEventListener === "function")
      addEventListener("storage", (e) => {
        if (e.key === place) this.events = new Map(this.stored()?.events ?? []);
      });
  }

  /** mark says that the person has seen a conversation up to an event. */
  mark(id: string, event: number): void {
    if (event <= (this.events.get(id) ?? 0)) return;
    const next = new Map(this.events);
    next.delete(id);
    next.set(id, event);
    for (const old of [...next.keys()].slice(0, Math.max(0, next.size - most))) next.delete(old);
    this.events = next;
    this.keep();
  }

  unread(row: Row): boolean {
    if (row.status === "STARTING" || (row.status === "RUNNING" && working.has(row.agent_state))) return false;
    const event = this.events.get(row.conversation_id);
    return event === undefined ? Date.parse(row.last_updated_at) > this.since : row.last_event_id > event;
  }

  private stored(): Stored | undefined {
    try {
      const found = JSON.parse(browserStorage.get(place) ?? "null") as Stored | null;
      return found && Array.isArray(found.events) && typeof found.since === "number" ? found : undefined;
    } catch {
      return undefined; // of another version
    }
  }

  private keep(): void {
    browserStorage.set(place, JSON.stringify({ since: this.since, events: [...this.events] } satisfies Stored));
  }
}

export const seen = new Seen();
