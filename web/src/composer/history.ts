// The person's earlier messages, as a shell has its commands: ArrowUp goes back, ArrowDown forth.

export class History {
  private at = -1;
  private draft = "";

  /** entries are the messages, newest first. */
  constructor(private readonly entries: () => string[]) {}

  /** browses says whether the text is one of the messages, unchanged. */
  browses(text: string): boolean {
    return this.at >= 0 && this.entries()[this.at] === text;
  }

  /** older is the message before the one that is shown; undefined if there is none. */
  older(text: string): string | undefined {
    if (!this.browses(text)) {
      this.at = -1;
      this.draft = text;
    }
    const next = this.entries()[this.at + 1];
    if (next === undefined) return undefined;
    this.at++;
    return next;
  }

  /** newer is the message after the one that is shown, and at last what was being written. */
  newer(text: string): string | undefined {
    if (!this.browses(text)) return undefined;
    this.at--;
    return this.at < 0 ? this.draft : this.entries()[this.at];
  }
}
