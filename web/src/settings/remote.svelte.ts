// Lists that the server keeps beside the settings, and what is done to them at once.
import { ApiError } from "../lib/api";
import { toasts } from "../lib/toasts.svelte";

/** A value that is asked for, and asked for again after a change. */
export class Remote<T> {
  value = $state.raw<T | undefined>();
  error = $state("");

  constructor(private readonly ask: () => Promise<T>) {
    void this.load();
  }

  async load(): Promise<void> {
    try {
      this.value = await this.ask();
      this.error = "";
    } catch (err) {
      this.error = err instanceof Error ? err.message : String(err);
    }
  }
}

/** Something that is done when a button is pressed, with what the server said against it. */
export class Action {
  busy = $state(false);
  /** What went wrong, if it belongs to no field. */
  trouble = $state("");
  private failure = $state.raw<ApiError | undefined>();
  private watched = 0;

  /** watch says that trouble is shown somewhere, until the result is called; otherwise it is a notice. */
  watch(): () => void {
    this.watched++;
    return () => {
      this.watched--;
      this.trouble = "";
    };
  }

  /** run does it; false if it failed. */
  async run(what: () => Promise<unknown>): Promise<boolean> {
    if (this.busy) return false;
    this.busy = true;
    this.forget();
    try {
      await what();
      return true;
    } catch (err) {
      if (err instanceof ApiError && err.fields.length > 0) this.failure = err;
      else if (this.watched > 0) this.trouble = err instanceof Error ? err.message : String(err);
      else toasts.failed(err);
      return false;
    } finally {
      this.busy = false;
    }
  }

  /** field is what is wrong with a field, or with a part of it. */
  field(name: string): string | undefined {
    return this.failure?.fields.find((f) => {
      const path = f.loc.slice(1).join(".");
      return path === name || path.startsWith(name + ".");
    })?.msg;
  }

  /** forget drops what was said, when a form is opened anew. */
  forget(): void {
    this.failure = undefined;
    this.trouble = "";
  }
}
