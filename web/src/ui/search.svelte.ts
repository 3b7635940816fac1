// A search as the person types, for fields that offer choices.

export interface Choice<T = string> {
  value: T;
  name: string;
  note?: string;
}

export class Search<T> {
  found = $state.raw<Choice<T>[]>([]);
  busy = $state(false);
  /** Why the last search failed. */
  failed = $state("");
  /** The choice that the keyboard has reached. */
  at = $state(0);
  private request = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly find: () => Promise<Choice<T>[]> | Choice<T>[]) {}

  /** start searches after a pause in ms. A new search replaces one that is still running. */
  start(wait: number): void {
    this.cancel();
    const mine = this.request;
    this.busy = true;
    this.timer = setTimeout(async () => {
      const answer = await Promise.resolve()
        .then(() => this.find())
        .then(
          (list) => ({ list, why: "" }),
          (err: unknown) => ({ list: [], why: err instanceof Error ? err.message : String(err) }),
        );
      if (mine !== this.request) return;
      this.found = answer.list;
      this.failed = answer.why;
      this.busy = false;
      this.at = 0;
    }, wait);
  }

  cancel(): void {
    clearTimeout(this.timer);
    this.request++;
  }

  /** move goes up or down in a list of so many, and around its ends. */
  move(step: number, count: number): void {
    this.at = (this.at + step + count) % Math.max(count, 1);
  }
}
