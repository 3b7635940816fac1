// What is being completed in a message: a mention after @, or a command after a slash at the
// beginning.

export interface Trigger {
  kind: "mention" | "command";
  /** Where the mark is. */
  from: number;
  /** Where the word ends. */
  to: number;
  /** The word behind the mark. */
  query: string;
}

/** triggerAt is what the word at the caret begins with; undefined if it is an ordinary word. */
export function triggerAt(text: string, caret: number): Trigger | undefined {
  const before = text.slice(0, caret);
  const command = /^\/([\w:.-]*)$/.exec(before);
  if (command) return { kind: "command", from: 0, to: caret, query: command[1]! };
  // In quotes, a name may have spaces.
  const mention = /(?:^|[\s(])@("[^"\n]{0,100}|[^\s@"]{0,100})$/.exec(before);
  if (mention) return { kind: "mention", from: caret - mention[1]!.length - 1, to: caret, query: mention[1]!.replace(/^"/, "") };
  return undefined;
}

/** commandIn is the command that a message is, and its arguments. */
export function commandIn(text: string): { name: string; args: string } | undefined {
  const found = /^\/([A-Za-z0-9][\w:.-]*)(?:\s+([\s\S]*))?$/.exec(text.trim());
  return found ? { name: found[1]!, args: (found[2] ?? "").trim() } : undefined;
}

/** replaced is the text with something else in the place of what was being completed, and where the caret is then. */
export function replaced(text: string, at: Trigger, by: string): { text: string; caret: number } {
  const rest = text.slice(at.to);
  const gap = /^\s/.test(rest) ? "" : " ";
  const before = text.slice(0, at.from) + by + gap;
  return { text: before + rest, caret: before.length + (gap ? 0 : 1) };
}

/** fits says whether a name has all letters of a query, in order; rank is smaller for better ones. */
export function rank(name: string, query: string): number {
  const n = name.toLowerCase();
  const q = query.toLowerCase();
  if (n.startsWith(q)) return 0;
  const at = n.indexOf(q);
  if (at >= 0) return 1 + at;
  let from = 0;
  for (const c of q) {
    from = n.indexOf(c, from) + 1;
    if (from === 0) return Infinity;
  }
  return 1000 + n.length;
}

/** nearest returns the name that was probably meant: one with at most two wrong letters, or one that begins with what was typed. */
export function nearest(typed: string, names: string[]): string | undefined {
  const t = typed.toLowerCase();
  const scored = names
    .map((name) => ({ name, far: distance(t, name.toLowerCase()) }))
    .filter(({ name, far }) => far <= (t.length < 4 ? 1 : 2) || (t.length > 2 && name.toLowerCase().startsWith(t)));
  return scored.sort((a, b) => a.far - b.far)[0]?.name;
}

/** distance is how many letters differ; two that changed places count as one. */
function distance(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const other = a[i - 1] === b[j - 1] ? 0 : 1;
      let least = Math.min(rows[i - 1]![j]! + 1, row[j - 1]! + 1, rows[i - 1]![j - 1]! + other);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) least = Math.min(least, rows[i - 2]![j - 2]! + 1);
      row.push(least);
    }
    rows.push(row);
  }
  return rows[a.length]![b.length]!;
}
