// Short notices that go away by themselves; failures stay until they are dismissed.

export interface Toast {
  id: number;
  kind: "info" | "good" | "bad";
  text: string;
}

class Toasts {
  all = $state<Toast[]>([]);
  private next = 1;

  say(text: string, kind: Toast["kind"] = "info"): void {
    // The same once more is no news, only in the way.
    this.all = this.all.filter((t) => t.kind !== kind || t.text !== text);
    const id = this.next++;
    this.all.push({ id, kind, text });
    if (kind !== "bad") setTimeout(() => this.dismiss(id), 5000);
  }

  /** failed shows what went wrong in the server's own words. */
  failed(err: unknown): void {
    this.say(err instanceof Error ? err.message : String(err), "bad");
  }

  dismiss(id: number): void {
    this.all = this.all.filter((t) => t.id !== id);
  }
}

export const toasts = new Toasts();
