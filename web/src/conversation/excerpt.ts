// Long texts are costly to render and rarely read to the end: a part of them is shown first.

const mostLines = 300;
const mostChars = 12_000;

export interface Excerpt {
  text: string;
  /** How many lines are left out. */
  hidden: number;
}

/** excerpt is the beginning of a long text, or its end while it is being written. */
export function excerpt(text: string, end: boolean): Excerpt {
  if (text.length <= mostChars && !manyLines(text)) return { text, hidden: 0 };
  const lines = text.split("\n");
  const order = end ? lines.toReversed() : lines;
  const kept: string[] = [];
  let size = 0;
  for (const line of order) {
    if (kept.length === mostLines || (kept.length > 0 && size + line.length > mostChars)) break;
    kept.push(line);
    size += line.length + 1;
  }
  const shown = (end ? kept.reverse() : kept).join("\n");
  const hidden = lines.length - kept.length;
  if (size <= mostChars + 1) return { text: shown, hidden };
  // Even one line is too long; the rest of it counts as one that is left out.
  return { text: end ? shown.slice(-mostChars) : shown.slice(0, mostChars), hidden: hidden + 1 };
}

function manyLines(text: string): boolean {
  let count = 0;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) if (++count >= mostLines) return true;
  return false;
}

/** firstLine returns the first line of a text, truncated. */
export function firstLine(text: string, most = 60): string {
  const all = text.trim();
  const line = all.split("\n", 1)[0]!.slice(0, most).trimEnd();
  return line === all ? line : `${line}…`;
}
