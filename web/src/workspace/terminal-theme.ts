// What a terminal needs of the page: its colours, and elements that the page's policy lets be.
import type { ITheme } from "@xterm/xterm";

const names = [
  "black",
  "red",
  "green",
  "yellow",
  "blue",
  "magenta",
  "cyan",
  "white",
  "brightBlack",
  "brightRed",
  "brightGreen",
  "brightYellow",
  "brightBlue",
  "brightMagenta",
  "brightCyan",
  "brightWhite",
] as const;

/** colours are those of the page now, as plain values: a terminal does not know the page's names. */
export function colours(): ITheme {
  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  const value = (name: string): string => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const theme: ITheme = {
    background: value("--sunken"),
    foreground: value("--ink"),
    cursor: value("--sea"),
    cursorAccent: value("--sunken"),
    selectionBackground: value("--edge"),
    selectionForeground: value("--paper"),
  };
  names.forEach((name, i) => (theme[name] = value(`--ansi-${i}`)));
  probe.remove();
  return theme;
}

const nonce = () => document.querySelector('meta[name="csp-nonce"]')?.getAttribute("content") ?? "";

const make = document.createElement;
let users = 0;

/**
 * allow lets a terminal draw under the page's policy until the result is called. Its style
 * elements get the page's nonce; and where it writes a style attribute, which the policy
 * forbids, the style itself is set, which it allows. It draws at any time, and makes its
 * elements from the document itself: hence here, and only while there is one.
 */
export function allow(): () => void {
  if (users++ === 0) document.createElement = lawful as typeof make;
  return () => {
    if (--users === 0) document.createElement = make;
  };
}

function lawful(this: Document, tag: string, options?: ElementCreationOptions): HTMLElement {
  const made = make.call(this, tag, options);
  if (tag === "style") made.nonce = nonce();
  if (tag === "span") {
    made.setAttribute = (name: string, value: string) => {
      if (name === "style") made.style.cssText = value;
      else Element.prototype.setAttribute.call(made, name, value);
    };
  }
  return made;
}
