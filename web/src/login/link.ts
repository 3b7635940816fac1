// What a login link and a browser say about themselves.

/** The ticket of a login link, from what stands behind the #. */
export function ticketOf(hash: string): string | undefined {
  return /^#([\w-]{22})$/.exec(hash)?.[1];
}

/**
 * What the server says of who asked for the page: "stranger" is not logged in, "new" has no
 * settings yet, "astray" got the login in place of another page and may be logged in. It
 * spares requests whose answer would be no.
 */
export const visitor = () => document.querySelector('meta[name="deckhand-visitor"]')?.getAttribute("content") ?? "";

/** The first language somebody reads that there is, also in another country's spelling. */
export function preferredLanguage(wanted: readonly string[], known: readonly string[]): string {
  for (const code of wanted) {
    const exact = known.find((k) => k.toLowerCase() === code.toLowerCase());
    const near = exact ?? known.find((k) => k.split("-")[0] === code.toLowerCase().split("-")[0]);
    if (near) return near;
  }
  return "en";
}
