// What can be done from the keyboard: every page adds its commands while it is shown,
// and the palette lists them all.
import { browserStorage } from "./storage";
import { plain, written } from "./keys";

export interface Command {
  id: string;
  /** What it does, in the person's language. */
  name: string;
  /** Keys, such as "mod+k", "g h" or "?". mod is Cmd on a Mac and Ctrl elsewhere. */
  keys?: string;
  run(): void;
}

const place = "deckhand-plain-keys";

class Commands {
  all = $state.raw<Command[]>([]);
  /** Whether the palette is shown. */
  open = $state(false);
  /** Whether the list of keys is shown. */
  listed = $state(false);
  /** Whether keys count that are pressed without Ctrl, Cmd or Alt. Kept in this browser. */
  plainKeys = $state(browserStorage.get(place) !== "off");
  // The same, not watched: who adds does not depend on what others add, and an effect
  // that ends sees states as they were, not as another that ended before it left them.
  private known: Command[] = [];
  private before = "";

  constructor() {
    addEventListener("keydown", (e) => this.pressed(e));
  }

  /** add offers commands until the result is called; for $effect. */
  add(...list: Command[]): () => void {
    this.all = this.known = [...this.known, ...list];
    return () => {
      this.all = this.known = this.known.filter((c) => !list.includes(c));
    };
  }

  usePlainKeys(yes: boolean): void {
    this.plainKeys = yes;
    if (yes) browserStorage.remove(place);
    else browserStorage.set(place, "off");
  }

  private pressed(e: KeyboardEvent): void {
    const key = written(e);
    if (!key || e.defaultPrevented) return;
    const both = this.before ? `${this.before} ${key}` : key;
    const mayType = typing(e.target);
    const offered = this.all.filter((c) => c.keys && this.counts(c.keys, mayType));
    const found = offered.find((c) => c.keys === both) ?? offered.find((c) => c.keys === key);
    this.before = "";
    if (found) {
      e.preventDefault();
      found.run();
    } else if (offered.some((c) => c.keys!.startsWith(key + " "))) {
      this.before = key;
    }
  }

  /** Behind a window nothing happens, and in a field letters are text. */
  private counts(keys: string, mayType: boolean): boolean {
    if (document.querySelector("dialog[open]")) return this.open && keys === "mod+k";
    return keys.startsWith("mod+") || (!mayType && (this.plainKeys || !plain(keys)));
  }
}

const withoutText = /^(?:button|checkbox|color|file|image|radio|range|reset|submit)$/;

/** typing is whether letters are text where they were typed. */
function typing(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement) return !withoutText.test(target.type);
  return target instanceof HTMLElement && (target.isContentEditable || /^(TEXTAREA|SELECT)$/.test(target.tagName));
}

export const commands = new Commands();
