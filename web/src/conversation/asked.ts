// What a call that waits for a yes would do, as a person reads it.
import { type Fields, text } from "../lib/events";
import { compare, type Row } from "./diff";

/** Arguments that are a text by themselves, by the tool that takes them. */
const texts: Record<string, string> = { execute_bash: "command", execute_ipython_cell: "code" };

/** main is the name of the one argument that says it all, if there is one. */
export function main(tool: string, args: Fields): string | undefined {
  const name = texts[tool];
  return name !== undefined && typeof args[name] === "string" ? name : undefined;
}

const editor = "str_replace_editor";

/** What each command of the editor takes away and puts there. It heeds no other argument, whatever a model gives. */
const edits: Record<string, { before?: string; after: string }> = {
  create: { after: "file_text" },
  str_replace: { before: "old_str", after: "new_str" },
  insert: { after: "new_str" },
};

/** edited is how a call changes a file, if that can be told. A tool of a stranger's may name its arguments alike and do something else. */
const edited = (tool: string, args: Fields) => (tool === editor && text(args, "path") ? edits[text(args, "command")] : undefined);

/** change is what an edit would make of a file. */
export function change(tool: string, args: Fields): { path: string; rows: Row[] } | undefined {
  const edit = edited(tool, args);
  const rows = edit ? compare(edit.before ? text(args, edit.before) : "", text(args, edit.after)) : [];
  return rows.length > 0 ? { path: text(args, "path"), rows } : undefined;
}

/** What changes nothing about a command. */
const nothing = new Set<unknown>([null, false, "false", ""]);

/** rest is what else the call was given beside what is shown already, and beside the risk, which has its own place. */
export function rest(tool: string, args: Fields): string {
  const edit = change(tool, args) && edited(tool, args);
  const seen = new Set([main(tool, args), "security_risk", ...(edit ? ["path", edit.before, edit.after] : [])]);
  const left = Object.entries(args).filter(([name, value]) => !seen.has(name) && !(tool in texts && nothing.has(value)));
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
