// An action that a button starts, and its errors.
import { ApiError } from "../lib/api";
import { toasts } from "../lib/toasts.svelte";

export class Action {
  busy = $state(false);
  /** The error, if it belongs to no field. */
  error = $state("");
  private failure = $state.raw<ApiError | undefined>();
  private watched = 0;

  /** watch says that error is shown until the returned function is called; otherwise errors are toasts. */
  watch(): () => void {
    this.watched++;
    return () => {
      this.watched--;
      this.error = "";
    };
  }

  /** run reports whether it succeeded. */
  async run(what: () => Promise<unknown>): Promise<boolean> {
    if (this.busy) return false;
    this.busy = true;
    this.forget();
    try {
      await what();
      return true;
    } catch (err) {
      if (err instanceof ApiError && err.fields.length > 0) this.failure = err;
      else if (this.watched > 0) this.error = err instanceof Error ? err.message : String(err);
      else toasts.failed(err);
      return false;
    } finally {
      this.busy = false;
    }
  }

  /** field is the error of a field, or of a part of it. */
  field(name: string): string | undefined {
    return this.failure?.fields.find((f) => {
      const path = f.loc.slice(1).join(".");
      return path === name || path.startsWith(name + ".");
    })?.msg;
  }

  /** forget drops the errors, when a form is opened again. */
  forget(): void {
    this.failure = undefined;
    this.error = "";
  }
}
