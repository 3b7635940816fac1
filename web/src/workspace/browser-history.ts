// The history of the browser, oldest first.
import { type Event, means, resultOf, text } from "../lib/events";

/** What one step in the browser showed. */
export interface Look {
  id: number;
  at: number;
  url: string;
  picture: string;
  /** The words of the page, which stand in for a picture. */
  words: string;
  failed: boolean;
  trouble: string;
}

const longest = 50_000;

/** joined adds steps, in any order, some of them perhaps again. */
export function joined(have: Look[], more: Event[]): Look[] {
  const all = new Map(have.map((l) => [l.id, l]));
  for (const l of more.flatMap(means).flatMap(look)) all.set(l.id, all.get(l.id) ?? l);
  return [...all.values()].sort((a, b) => a.id - b.id);
}

/** look is what a result shows; one without a page shows nothing. */
function look(e: Event): Look[] {
  if (e.kind !== "tool_returned") return [];
  const { id, at, failed, outcome, output, details } = resultOf(e);
  if (failed) return [];
  const picture = text(details, "screenshot");
  return [
    {
      id,
      at,
      url: text(details, "url"),
      picture,
      words: picture ? "" : output.slice(0, longest),
      failed: outcome === "failed" || details.error === true,
      trouble: text(details, "last_browser_action_error"),
    },
  ];
}
