// The history of the browser, oldest first.
import type { Look } from "./routes";

/** joined adds steps, in any order, some of them perhaps again. Only what is shown is kept. */
export function joined(have: Look[], more: Look[]): Look[] {
  const all = new Map(have.map((l) => [l.id, l]));
  for (const l of more) if (!all.has(l.id)) all.set(l.id, slim(l));
  return [...all.values()].sort((a, b) => a.id - b.id);
}

const longest = 50_000;

function slim({ id, timestamp, content, extras }: Look): Look {
  return {
    id,
    timestamp,
    // The words stand in for a picture.
    ...(extras?.screenshot ? {} : { content: content?.slice(0, longest) }),
    extras: extras && { url: extras.url, screenshot: extras.screenshot, error: extras.error, last_browser_action_error: extras.last_browser_action_error },
  };
}
