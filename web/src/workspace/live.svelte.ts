// What the panels of the workspace know about the conversation: whether its sandbox is running,
// and when to refresh.
import type { Event } from "../lib/events";
import * as routes from "./routes";
import { affectedPanels } from "./affected-panels";

const longestPause = 10_000;

interface Frame {
  type: string;
  data: Event;
}

export class Live {
  info = $state.raw<routes.Conversation | undefined>();
  /** Counts events that may have changed files. */
  fileChanges = $state(0);
  /** Counts events that show a web page. */
  pagesShown = $state(0);
  starting = $state(false);
  private after = -1;

  constructor(readonly id: string) {}

  get stopped(): boolean {
    return this.info?.status === "STOPPED";
  }

  /** Whether no sandbox is being started: it is started when it is needed. */
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
   * follow listens until the returned function is called. It uses a WebSocket because browsers
   * allow few other connections to one server, and the chat needs those.
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
        again(); // the panels show the error of their own requests
        return;
      }
      if (closed) return;
      socket = new WebSocket(routes.socket(this.id, "events/ws", { format: "deckhand", after: this.after }));
      socket.onopen = () => (pause = 500);
      socket.onmessage = (e) => {
        const frame = JSON.parse(e.data) as Frame;
        closed ||= frame.type === "end"; // the conversation was deleted
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
    const affected = affectedPanels(frame.data);
    if (affected.files) this.fileChanges++;
    if (affected.pages) this.pagesShown++;
    if (affected.status) void this.refresh().catch(() => {});
  }
}
