// One item of the history: a message, a call with its result, or a notice.
import type { Display, Event, Fields, Result } from "../lib/events";
import type { Retrying } from "./retries";
import type { StreamedText } from "./streamed-text";

export type Kind = "user" | "agent" | "tool" | "notice";

/** What can change after the item is created is reactive. */
export class Item {
  text = $state("");
  /** The result of a call. */
  result = $state.raw<Result | undefined>();
  /** The output so far of a command that is running. */
  liveOutput = $state("");
  /** Whether a call waits for approval. */
  awaitsApproval = $state(false);
  /** When the call started: after its approval, if it needed one. */
  startedAt = $state(0);
  /** Whether the answer is still being written. */
  streaming = $state(false);
  /** Whether the answer was cut off, so that the agent does not know it. */
  cutOff = $state(false);
  /** Whether the person opened or closed the card; undefined is the card's default. */
  open = $state<boolean | undefined>();
  /** The restore that hid the item from the agent. */
  hiddenBy = $state.raw<Item | undefined>();
  /** The number of items that a restore hid, and the first message among them. */
  hides = $state(0);
  firstHidden = $state("");
  /** The retries of a model call that failed. */
  retry = $state.raw<Retrying | undefined>();
  /** Whether a long text is shown in full. */
  showAll = $state(false);
  /** The height when it was last shown. */
  height = 0;
  /** The height to expect until then. */
  estimatedHeight = 0;
  /** Whether the agent has not read a message yet; the version of the log changes with it. */
  unread = false;
  /** Whether a message was sent while the agent was working, so that it belongs to that turn. */
  joined = false;
  images: string[] = [];
  files: string[] = [];
  args: Fields = {};
  /** The rated risk of a call: -1 unknown, 0 low, 1 medium, 2 high. */
  risk = -1;
  display: Display = { content: "plain", title: "", main: "" };
  /** The event behind a notice that has no text. */
  event: Event | undefined;
  callId = "";
  stream: StreamedText | undefined;

  constructor(
    readonly key: string,
    readonly kind: Kind,
    /** The name of the tool, or the subject of the notice. */
    readonly name: string,
    public id: number,
    public at: number,
  ) {
    this.startedAt = at;
  }
}
