// Following a conversation: stored events, then new ones, without a gap. The browser
// reconnects by itself and says where it was; what it gives up on is tried again here.
import { baseUrl, type Schemas } from "./api";
import type { Event } from "./events";

/** A piece of something that is not finished: words of an answer, output of a command. */
export interface Delta {
  call: string;
  offset: number;
  text?: string;
}

/** The position in the queue for a free slot; null if the agent does not wait for one. */
export type QueuePlace = Schemas["QueuePlace"] | null;

export interface Follower {
  event(e: Event): void;
  delta(d: Delta): void;
  queue(place: QueuePlace): void;
  /** The conversation was deleted. */
  end(): void;
  /** Whether there is a connection. */
  connected(yes: boolean): void;
}

const longestPause = 10_000;

/** follow reads on after an event until the result is called. */
export function follow(id: string, after: number, to: Follower): () => void {
  let source: EventSource | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let pause = 500;

  function open(): void {
    source = new EventSource(`${baseUrl}/api/conversations/${encodeURIComponent(id)}/events/stream?format=deckhand&after=${after}`);
    source.onopen = () => {
      pause = 500;
      to.connected(true);
    };
    source.onmessage = (m) => {
      const e = JSON.parse(m.data) as Event;
      after = e.id;
      to.event(e);
    };
    source.addEventListener("delta", (e) => to.delta(JSON.parse(e.data)));
    source.addEventListener("queue", (e) => to.queue(JSON.parse(e.data)));
    source.addEventListener("end", () => {
      close();
      to.end();
    });
    source.onerror = () => {
      to.connected(false);
      if (source?.readyState !== EventSource.CLOSED) return; // the browser tries again
      timer = setTimeout(open, pause);
      pause = Math.min(2 * pause, longestPause);
    };
  }

  // A browser that loses its network may not notice for a long time that nothing comes any more.
  const lost = () => to.connected(false);
  function found(): void {
    clearTimeout(timer);
    source?.close();
    open();
  }

  function close(): void {
    clearTimeout(timer);
    source?.close();
    removeEventListener("offline", lost);
    removeEventListener("online", found);
  }

  addEventListener("offline", lost);
  addEventListener("online", found);
  open();
  return close;
}
