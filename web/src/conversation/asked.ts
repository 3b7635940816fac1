// What a call that waits for a yes would do, as a person reads it.
import { type Display, type Fields, text } from "../lib/events";
import { compare, type Row } from "./diff";

/** main is the name of the one argument that says it all, if there is one. */
export const main = ({ main: name }: Display, args: Fields) => (typeof args[name] === "string" ? name : undefined);

/** change is what a call would make of a file, if that can be told. */
export function change({ file }: Display, args: Fields): { path: string; rows: Row[] } | undefined {
  if (!file?.after || !text(args, file.path)) return undefined;
  const rows = compare(file.before ? text(args, file.before) : "", text(args, file.after));
  return rows.length > 0 ? { path: text(args, file.path), rows } : undefined;
}

/** What changes nothing about a command. */
const nothing = new Set<unknown>([null, false, "false", ""]);

/** rest is what else the call was given beside what is shown already, and beside the risk, which has its own place. */
export function rest(display: Display, args: Fields): string {
  const { content, file } = display;
  const seen = new Set([
    main(display, args),
    "security_risk",
    ...(file && change(display, args) ? [file.path, file.before, file.after] : []),
  ]);
  const runs = content === "command" || content === "code";
  const left = Object.entries(args).filter(([name, value]) => !seen.has(name) && !(runs && nothing.has(value)));
  return left.length > 0 ? JSON.stringify(Object.fromEntries(left), null, 2) : "";
}

// Characters that are not seen, or that change the order in which others are: with them a
// command can be read as another.
const unseen =
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/** revealed is a text in parts, the odd of which are characters that nobody would see, by their numbers. */
export function revealed(text: string): string[] {
  const parts: string[] = [];
  let from = 0;
  for (const found of text.matchAll(unseen)) {
    parts.push(text.slice(from, found.index), `U+${found[0].codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`);
    from = found.index + found[0].length;
  }
  return [...parts, text.slice(from)];
}
