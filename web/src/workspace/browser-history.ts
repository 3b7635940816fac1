// The history of the agent's browser, oldest first.
import { type Event, means, resultOf, text } from "../lib/events";

/** A page as it was after one call. */
export interface Visit {
  id: number;
  at: number;
  url: string;
  screenshot: string;
  /** The text of the page, if there is no screenshot. */
  text: string;
  failed: boolean;
  error: string;
}

const maxText = 50_000;

/** withResults adds results, in any order; one that is already there changes nothing. */
export function withResults(visits: Visit[], results: Event[]): Visit[] {
  const all = new Map(visits.map((v) => [v.id, v]));
  for (const v of results.flatMap(means).flatMap(visit)) all.set(v.id, all.get(v.id) ?? v);
  return [...all.values()].sort((a, b) => a.id - b.id);
}

/** visit is the page that a result shows; none if the call failed without one. */
function visit(e: Event): Visit[] {
  if (e.kind !== "tool_returned") return [];
  const { id, at, failed, outcome, output, details } = resultOf(e);
  if (failed) return [];
  const screenshot = text(details, "screenshot");
  return [
    {
      id,
      at,
      url: text(details, "url"),
      screenshot,
      text: screenshot ? "" : output.slice(0, maxText),
      failed: outcome === "failed" || details.error === true,
      error: text(details, "last_browser_action_error"),
    },
  ];
}
