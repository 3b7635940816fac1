// What time it is for the server, whose times the page shows. The clock of the machine with
// the browser may be wrong; "in three hours" is no time for something to have happened.

/** Answers say the time in seconds, and take a while. */
const close = 5000;

let ahead = 0;

/** heard compares the clocks when an answer came. */
export function heard(date: string | null): void {
  const there = Date.parse(date ?? "");
  if (Number.isNaN(there)) return;
  const by = there - Date.now();
  ahead = Math.abs(by) < close ? 0 : by;
}

export const now = () => Date.now() + ahead;
