// What a call that waits for a yes would do, as a person reads it.
import { compare, type Row } from "./diff";
import { type Fields, text } from "./events";

/** Arguments that are a text by themselves, by the tool that takes them. */
const texts: Record<string, string> = { execute_bash: "command", execute_ipython_cell: "code" };

/** main is the name of the one argument that says it all, if there is one. */
export function main(tool: string, args: Fields): string | undefined {
  const name = texts[tool];
  return name !== undefined && typeof args[name] === "string" ? name : undefined;
}

/** change is what an edit would make of a file, if that can be told from the call. */
export function change(args: Fields): { path: string; rows: Row[] } | undefined {
  const path = text(args, "path");
  const after = text(args, "new_str") || text(args, "file_text");
  const rows = path ? compare(text(args, "old_str"), after) : [];
  return rows.length > 0 ? { path, rows } : undefined;
}
