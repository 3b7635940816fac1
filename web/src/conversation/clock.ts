// The time of day at which something happened; with the day, if that was not today.
import { language } from "../lib/i18n.svelte";

const formats = new Map<string, Intl.DateTimeFormat>();

function format(code: string, day: boolean): Intl.DateTimeFormat {
  const key = code + day;
  let f = formats.get(key);
  if (!f) formats.set(key, (f = new Intl.DateTimeFormat(code, day ? { dateStyle: "short", timeStyle: "short" } : { timeStyle: "short" })));
  return f;
}

export function clock(at: number): string {
  return format(language.code, new Date(at).toDateString() !== new Date().toDateString()).format(at);
}
