// What can be done from the keyboard: every page adds its commands while it is shown,
// and the palette lists them all.

export interface Command {
  id: string;
  /** What it does, in the person's language. */
  name: string;
  /** Keys, such as "mod+k", "g h" or "?". mod is Cmd on a Mac and Ctrl elsewhere. */
  keys?: string;
  run(): void;
}

export const onMac = /Mac|iPhone|iPad/.test(navigator.platform);

class Commands {
  all = $state.raw<Command[]>([]);
  /** Whether the palette is shown. */
  open = $state(false);
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

  private pressed(e: KeyboardEvent): void {
    const key = name(e);
    if (!key || e.defaultPrevented) return;
    const both = this.before ? `${this.before} ${key}` : key;
    const mayType = typing(e.target);
    const found = this.all.find((c) => c.keys === both) ?? this.all.find((c) => c.keys === key);
    this.before = "";
    if (found && !(mayType && !found.keys!.startsWith("mod+"))) {
      e.preventDefault();
      found.run();
    } else if (!mayType && this.all.some((c) => c.keys?.startsWith(key + " "))) {
      this.before = key;
    }
  }
}

/** name is a key press as commands write it. */
function name(e: KeyboardEvent): string {
  if (["Shift", "Control", "Meta", "Alt"].includes(e.key)) return "";
  const mod = onMac ? e.metaKey : e.ctrlKey;
  // With Alt some keyboards write another character: ¡ in place of 1 on a Mac.
  const digit = e.altKey ? /^Digit(\d)$/.exec(e.code)?.[1] : undefined;
  const key = digit ?? (e.key.length === 1 ? e.key.toLowerCase() : e.key);
  return (mod ? "mod+" : "") + (e.altKey ? "alt+" : "") + (e.shiftKey && e.key.length > 1 ? "shift+" : "") + key;
}

/** In a field, letters are text. */
function typing(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

/** shown is how keys are written for people. */
export function shown(keys: string): string[] {
  return keys.split(/[ +]/).map((k) => (k === "mod" ? (onMac ? "⌘" : "Ctrl") : k.length === 1 ? k.toUpperCase() : k));
}

export const commands = new Commands();
