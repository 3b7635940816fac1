// Keys as commands write them, and as people read them.

export const onMac = typeof navigator !== "undefined" && /Mac|iPhone|iPad/.test(navigator.platform);

type Press = Pick<KeyboardEvent, "key" | "metaKey" | "ctrlKey" | "altKey" | "shiftKey"> & { code?: string };

/** written is a key press as commands write it: "mod+k", "alt+1", "?". mod is Cmd on a Mac and Ctrl elsewhere. */
export function written(e: Press, mac = onMac): string {
  if (["Shift", "Control", "Meta", "Alt", "AltGraph"].includes(e.key)) return "";
  const mod = mac ? e.metaKey : e.ctrlKey;
  // With Alt some keyboards write another character: ¡ in place of 1 on a Mac.
  const digit = e.altKey ? /^Digit(\d)$/.exec(e.code ?? "")?.[1] : undefined;
  const key = digit ?? (e.key.length === 1 ? e.key.toLowerCase() : e.key);
  return (mod ? "mod+" : "") + (e.altKey ? "alt+" : "") + (e.shiftKey && e.key.length > 1 ? "shift+" : "") + key;
}

const others: Record<string, string> = { mod: "Ctrl", alt: "Alt", shift: "Shift", Enter: "⏎", Escape: "Esc", ArrowUp: "↑", ArrowDown: "↓" };
const macs: Record<string, string> = { mod: "⌘", alt: "⌥", shift: "⇧" };

/** shown is how keys are written for people. */
export function shown(keys: string, mac = onMac): string[] {
  return keys.split(/[ +]/).map((k) => (mac ? macs[k] : undefined) ?? others[k] ?? (k.length === 1 ? k.toUpperCase() : k));
}

/** plain is whether keys are pressed without Ctrl, Cmd or Alt, as people who speak to their machine may not want. */
export const plain = (keys: string) => !/(?:mod|alt)\+/.test(keys);
