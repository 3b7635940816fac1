// What a call that waits for approval would do, as it is shown to the person. Nothing that the
// call was given may be left out.
import { type Display, type Fields, text } from "../lib/events";
import { compare, type Row } from "./diff";

/** main is the name of the main argument, if the call has it. */
export const main = ({ main: name }: Display, args: Fields) => (typeof args[name] === "string" ? name : undefined);

/** change is the change of a file that the call declares. */
export function change({ file }: Display, args: Fields): { path: string; rows: Row[] } | undefined {
  if (!file?.after || !text(args, file.path)) return undefined;
  const rows = compare(file.before ? text(args, file.before) : "", text(args, file.after));
  return rows.length > 0 ? { path: text(args, file.path), rows } : undefined;
}

/** Values of options that mean the default of a command. */
const unset = new Set<unknown>([null, false, "false", ""]);

/** rest is the remaining arguments, as JSON. The risk is shown elsewhere. */
export function rest(display: Display, args: Fields): string {
  const { content, file } = display;
  const seen = new Set([
    main(display, args),
    "security_risk",
    ...(file && change(display, args) ? [file.path, file.before, file.after] : []),
  ]);
  const runs = content === "command" || content === "code";
  const left = Object.entries(args).filter(([name, value]) => !seen.has(name) && !(runs && unset.has(value)));
  return left.length > 0 ? JSON.stringify(Object.fromEntries(left), null, 2) : "";
}
