// The points of a conversation whose files can be compared.
import { firstLine } from "../conversation/excerpt";
import { language, t } from "../lib/i18n.svelte";
import type { Checkpoint } from "./routes";

export interface Point {
  event: number;
  name: string;
}

/** A message of the conversation. */
export interface Message {
  id: number;
  text: string;
}

const time = (at: string) => new Date(at).toLocaleString(language.code, { dateStyle: "short", timeStyle: "short" });

/** points returns the points in time to choose from, newest first: now, the end of each turn that changed files, the start of each
 * turn before which others changed files, and the selected one. */
export function points(list: Checkpoint[], messages: Message[], looked: number): Point[] {
  const out = list.toReversed().map(({ event_id: event, time: at, between_turns: between }): Point => {
    const next = between && messages.find((m) => m.id > event);
    if (next) return { event, name: t("compare.before", { message: firstLine(next.text, 40) }) };
    const said = messages.findLast((m) => m.id <= event);
    if (between && said) return { event, name: t("compare.own-after", { message: firstLine(said.text, 40) }) };
    return {
      event,
      name: said ? t("compare.after-message", { message: firstLine(said.text, 40) }) : t("compare.after", { time: time(at) }),
    };
  });
  if (looked > 0 && !out.some((p) => p.event === looked)) {
    const next = messages.find((m) => m.id === looked + 1);
    out.unshift({ event: looked, name: next ? t("compare.before", { message: firstLine(next.text, 40) }) : `#${looked}` });
  }
  return [{ event: 0, name: t("compare.now") }, ...out];
}

/** beforeLastTurn returns the point before the last turn that changed files, 0 if there is none. */
export function beforeLastTurn(list: Checkpoint[]): number {
  const last = list.findLastIndex((c) => !c.between_turns);
  return list[last - 1]?.event_id ?? 0;
}
