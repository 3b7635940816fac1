// What came with the address that the page was opened by.
import { isDamaged, ticketOf } from "./link";

// A login link carries its ticket behind the #, which browsers send nowhere. It leaves the
// address before anything else happens, so that no history keeps it.
const ticket = ticketOf(location.hash);
if (ticket) history.replaceState(null, "", location.pathname + location.search);

// Who follows a link to the page that is open only changes what is behind the #.
addEventListener("hashchange", () => ticketOf(location.hash) && location.reload());

/** The ticket of a login link, which any page may have; good once. */
export const arrival = { ticket, damaged: isDamaged(location.pathname, location.hash) };
