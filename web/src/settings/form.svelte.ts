// The form that all sections of the settings share: a change in one is still there when
// one comes back from another, and all are stored at once.
import { ApiError, api, data, type FieldError, type Schemas } from "../lib/api";
import { t } from "../lib/i18n.svelte";
import { session } from "../lib/session.svelte";
import { toasts } from "../lib/toasts.svelte";
import { changed, type Changes, defaults, firstSettings, keyed, type Name } from "./changes";

export type KeyName = "llm_api_key" | "search_api_key" | "sandbox_api_key";

export class Form {
  changes = $state.raw<Changes>({});
  errors = $state.raw<FieldError[]>([]);
  /** Why the last storing failed, if it was no field's fault. */
  trouble = $state("");
  /** What else the last storing did, in the server's words. */
  notes = $state.raw<string[]>([]);
  busy = $state(false);
  /** Counts how often what was typed was given up or stored: controls start anew then. */
  round = $state(0);

  get count(): number {
    return Object.keys(this.changes).length;
  }

  stored(name: Name): unknown {
    return ((session.settings ?? defaults) as Changes)[name];
  }

  value(name: Name): unknown {
    return name in this.changes ? this.changes[name] : this.stored(name);
  }

  text(name: Name): string {
    return String(this.value(name) ?? "");
  }

  set(name: Name, value: unknown): void {
    this.changes = changed(this.changes, this.stored(name), name, value);
    this.forgive(name);
  }

  /** key sets one of the keys; undefined keeps what is stored. */
  key(name: KeyName, value: string | undefined): void {
    this.changes = keyed(this.changes, name, value);
    this.forgive(name);
  }

  /** error is what is wrong with a field, by its path with dots. */
  error(path: string): string | undefined {
    return this.errors.find((f) => f.loc.slice(1).join(".") === path)?.msg;
  }

  /** wrong are the fields with errors, by their first names. */
  get wrong(): string[] {
    return this.errors.map((f) => String(f.loc[1]));
  }

  discard(): void {
    this.changes = {};
    this.errors = [];
    this.trouble = "";
    this.round++;
  }

  /** save stores what was changed; false if the server did not take it. */
  async save(): Promise<boolean> {
    if (this.busy || this.count === 0) return true;
    this.busy = true;
    try {
      const stored = await data(
        api.POST("/api/settings", { body: { ...firstSettings(session.settings), ...this.changes } as Schemas["SettingsInput"] }),
      );
      await session.refresh();
      this.discard();
      this.notes = [
        ...(stored.notes ?? []),
        ...(stored.ignored_fields?.length ? [t("settings.ignored", { names: stored.ignored_fields.join(", ") })] : []),
      ];
      toasts.say(t("settings.saved"), "good");
      return true;
    } catch (err) {
      this.errors = err instanceof ApiError ? err.fields : [];
      this.trouble = this.errors.length > 0 ? "" : err instanceof Error ? err.message : String(err);
      return false;
    } finally {
      this.busy = false;
    }
  }

  /** What was said about a value does not hold for another one. */
  private forgive(name: Name): void {
    if (this.errors.some((f) => f.loc[1] === name)) this.errors = this.errors.filter((f) => f.loc[1] !== name);
  }
}
