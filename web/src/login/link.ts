// What a login link and a browser say about themselves.

/** The ticket of a login link, from what stands behind the #. */
export function ticketOf(hash: string): string | undefined {
  return /^#([\w-]{22})$/.exec(hash)?.[1];
}

/** Whether an address is a login link that was not copied as a whole. */
export const isDamaged = (path: string, hash: string): boolean =>
  path.endsWith("/login") && /^#[\w-]+$/.test(hash) && hash !== "#main" && !ticketOf(hash);

/**
 * Where a login leads that another page asked for: a path of the page, and the home page for
 * anything else. Browsers read more than "//" as the beginning of another site's address, so
 * it is a browser's reading that counts.
 */
export function nextOf(wanted: string | null): string {
  const here = "http://here.invalid";
  if (!wanted?.startsWith("/") || !URL.canParse(wanted, here)) return "/";
  const url = new URL(wanted, here);
  const path = url.pathname + url.search;
  return url.origin !== here || path.startsWith("//") || /^\/(login|api)(\/|\?|$)/.test(path) ? "/" : path;
}

/**
 * What the server says of who asked for the page: "stranger" is not logged in, "new" has no
 * settings yet, "astray" got the login in place of another page and may be logged in. It
 * spares requests whose answer would be no.
 */
export const visitor = () => document.querySelector('meta[name="deckhand-visitor"]')?.getAttribute("content") ?? "";

/** The first of the user's languages that is supported, also for another region. */
export function preferredLanguage(wanted: readonly string[], known: readonly string[]): string {
  for (const code of wanted) {
    const exact = known.find((k) => k.toLowerCase() === code.toLowerCase());
    const near = exact ?? known.find((k) => k.split("-")[0] === code.toLowerCase().split("-")[0]);
    if (near) return near;
  }
  return "en";
}

/**
 * Whether this is the address after a failed sign-on: without a login, the session need not
 * be requested. One that came too late may be the second of its kind.
 */
export function turnedAway(path: string, search: string): boolean {
  const why = new URLSearchParams(search).get("sign_on");
  return path.endsWith("/login") && why !== null && why !== "expired";
}
