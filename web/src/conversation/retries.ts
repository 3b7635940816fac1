// A model call that is retried is one card: its events change the card instead of adding others.
import type { Event } from "../lib/events";
import type { Item } from "./item.svelte";

/** How far the retries of a model call are. */
export interface Retrying {
  phase: "waits" | "runs" | "succeeded" | "ended";
  /** The number of the retry, and how many are made at most; 0 if unknown. */
  n: number;
  of: number;
  /** When the retry starts, in ms; 0 if unknown. */
  at: number;
}

/** add adds a notice to a list of items. */
type Add = (e: Event, name: string, words: string, to: Item[]) => Item;

const first: Retrying = { phase: "waits", n: 0, of: 0, at: 0 };

/** The message of a notice about a retry: its number, the highest number, the wait, the reason. */
const sentence = /^Retrying LLM request, (\d+) \/ (\d+), in [^:]*: ([^]*)$/;

export class Retries {
  /** The card of the call that is being retried. */
  open: Item | undefined;
  /** How many retries of that call have begun. */
  private began = 0;

  constructor(private readonly add: Add) {}

  /** fold takes an event; true if nothing else is to be shown for it. */
  fold(e: Event, to: Item[]): boolean {
    switch (e.kind) {
      case "model_failed":
        if (!e.payload.retried || e.payload.text || e.payload.class === "cancelled" || e.payload.class === "owner_lost") return false;
        this.change(e, e.payload.message ?? "", { ...(this.open?.retry ?? first), phase: "waits", at: 0 }, to);
        return true;
      case "noted":
        if (e.payload.id === "STATUS$LLM_FALLBACK") this.remove(to);
        if (e.payload.id !== "STATUS$LLM_RETRY") return false;
        this.noted(e.payload, e, to);
        return true;
      case "state_changed":
        if (e.payload.state !== "rate_limited") return false;
        if (!this.open) this.change(e, e.payload.reason ?? "", first, to);
        return false;
      case "model_asked":
        if (this.open?.retry && e.payload.purpose !== "title") {
          this.began = this.open.retry.n;
          this.open.retry = { ...this.open.retry, phase: "runs" };
        }
        return false;
      case "condensed": // the history was too long, and its own card says so
        if (this.open?.retry?.n === 0) this.remove(to);
        return false;
      case "model_answered":
        if (!e.payload.purpose) this.end("succeeded");
        return false;
      case "tool_called":
        this.end("succeeded");
        return false;
      case "paused":
      case "stopped":
        this.end("ended");
    }
    return false;
  }

  /** remove removes the card, because another one tells how the retries ended, and returns how many began. */
  remove(to: Item[]): number {
    const at = this.open ? to.lastIndexOf(this.open) : -1;
    if (at >= 0) to.splice(at, 1);
    const n = this.open ? this.began : 0;
    this.open = undefined;
    return n;
  }

  /** join ends the card at the end of a page by what the next, newer page begins with. */
  join(page: Item[], next: Item | undefined): void {
    if (next?.name === "retry" || next?.name === "state.error" || next?.name === "state.rate_limited") this.remove(page);
    else this.end(next?.kind === "agent" || next?.kind === "tool" ? "succeeded" : "ended");
  }

  private noted(p: { message: string; retry?: number; retries?: number; retry_at?: string }, e: Event, to: Item[]): void {
    // Logs of earlier versions have the numbers in the message only.
    const [, n, of, why] = sentence.exec(p.message) ?? [];
    const at = Date.parse(p.retry_at ?? "") || 0;
    this.change(e, why ?? p.message, { phase: "waits", n: p.retry ?? Number(n ?? 0), of: p.retries ?? Number(of ?? 0), at }, to);
  }

  private change(e: Event, words: string, retry: Retrying, to: Item[]): void {
    if (!this.open) this.began = 0;
    this.open ??= this.add(e, "retry", words, to);
    this.open.retry = retry;
    this.began = Math.max(this.began, retry.n - 1); // those before may be on an older page
    if (words) this.open.text = words;
  }

  private end(phase: "succeeded" | "ended"): void {
    const retry = this.open?.retry;
    if (this.open && retry) this.open.retry = { ...retry, phase, n: phase === "ended" ? this.began : retry.n };
    this.open = undefined;
  }
}
