// What the panels know of the conversation: whether its sandbox runs, and when something
// happened that may have changed what they show.
import { untrack } from "svelte";
import { createSubscriber } from "svelte/reactivity";

import type { Event } from "../lib/events";
import * as routes from "./routes";
import { touched } from "./affected-panels";

const longestPause = 10_000;

interface Frame {
  type: string;
  data: Event;
}

/** Whether anybody looks at the page: panels ask for nothing while nobody does. */
export const seen = (() => {
  const subscribe = createSubscriber((update) => {
    document.addEventListener("visibilitychange", update);
    return () => document.removeEventListener("visibilitychange", update);
  });
  return {
    get now(): boolean {
      subscribe();
      return !document.hidden;
    },
  };
})();

export class Live {
  info = $state.raw<routes.Conversation | undefined>();
  /** Counts what may have changed files, and steps of the browser. */
  files = $state(0);
  looks = $state(0);
  starting = $state(false);
  private after = -1;

  constructor(readonly id: string) {}

  get stopped(): boolean {
    return this.info?.status === "STOPPED";
  }

  /** idle is while nobody makes a sandbox: it is made when it is needed. */
  get idle(): boolean {
    return this.info?.status === "RUNNING" && !["loading", "running"].includes(this.info.agent_state);
  }

  get ready(): boolean {
    return this.info?.status === "RUNNING" && this.info.runtime_status === "STATUS$READY";
  }

  async refresh(): Promise<void> {
    this.info = await routes.conversation(this.id);
    if (this.after < 0) this.after = this.info.last_event_id;
  }

  async start(): Promise<void> {
    this.starting = true;
    try {
      await routes.start(this.id);
      await this.refresh();
    } finally {
      this.starting = false;
    }
  }

  /**
   * follow listens until the result is called. It is a WebSocket, since browsers allow few
   * other connections to one server, and the chat needs those.
   */
  follow(): () => void {
    let socket: WebSocket | undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let pause = 500;
    let closed = false;

    const open = async (): Promise<void> => {
      try {
        await this.refresh();
      } catch {
        again(); // a panel that asks itself says what is wrong
        return;
      }
      if (closed) return;
      socket = new WebSocket(routes.socket(this.id, "events/ws", { format: "deckhand", after: this.after }));
      socket.onopen = () => (pause = 500);
      socket.onmessage = (e) => {
        const frame = JSON.parse(e.data) as Frame;
        closed ||= frame.type === "end"; // it was deleted
        this.take(frame);
      };
      socket.onclose = again;
    };
    const again = (): void => {
      if (closed) return;
      timer = setTimeout(open, pause);
      pause = Math.min(2 * pause, longestPause);
    };

    void open();
    return () => {
      closed = true;
      clearTimeout(timer);
      socket?.close();
    };
  }

  private take(frame: Frame): void {
    if (frame.type !== "event") return;
    this.after = frame.data.id;
    const what = touched(frame.data);
    if (what.files) this.files++;
    if (what.looks) this.looks++;
    if (what.state) void this.refresh().catch(() => {});
  }
}

/**
 * every calls something now and then again and again, until the result is called; for
 * $effect, which does not depend on what is read meanwhile.
 */
export function every(ms: number, call: () => void): () => void {
  untrack(call);
  const timer = setInterval(call, ms);
  return () => clearInterval(timer);
}

/** settle calls something once a row of changes has ended, so that a busy agent does not cause a busy page. */
export function settle(ms: number, call: () => void): () => void {
  const timer = setTimeout(call, ms);
  return () => clearTimeout(timer);
}
