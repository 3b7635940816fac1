// Differences as rows to show: read from a unified diff, or made from two texts.

export interface Row {
  kind: "same" | "added" | "removed" | "gap";
  text: string;
  /** Line numbers, from 1. */
  old?: number;
  new?: number;
}

/** unified reads a unified diff of one file. */
export function unified(diff: string): Row[] {
  const rows: Row[] = [];
  let old = 0;
  let now = 0;
  // How many lines the hunk still has: what looks like a header within it is text.
  let oldLeft = 0;
  let newLeft = 0;
  for (const line of diff.split("\n")) {
    if (oldLeft > 0 || newLeft > 0) {
      const text = line.slice(1);
      if (line.startsWith("+")) {
        rows.push({ kind: "added", text, new: now++ });
        newLeft--;
      } else if (line.startsWith("-")) {
        rows.push({ kind: "removed", text, old: old++ });
        oldLeft--;
      } else if (!line.startsWith("\\")) {
        rows.push({ kind: "same", text, old: old++, new: now++ });
        oldLeft--;
        newLeft--;
      }
      continue;
    }
    const hunk = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)/.exec(line);
    if (!hunk) continue;
    old = Number(hunk[1]);
    now = Number(hunk[3]);
    oldLeft = Number(hunk[2] ?? 1);
    newLeft = Number(hunk[4] ?? 1);
    if (rows.length > 0) rows.push({ kind: "gap", text: hunk[5]?.trim() ?? "" });
  }
  return rows;
}

const context = 3;

/** compare makes the rows from two texts, with a few lines around each change. */
export function compare(before: string, after: string): Row[] {
  const a = lines(before);
  const b = lines(after);
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const rows: Row[] = [];
  let old = 1;
  let now = 1;
  const push = (kind: Row["kind"], text: string) => {
    if (kind === "same") rows.push({ kind, text, old: old++, new: now++ });
    else if (kind === "added") rows.push({ kind, text, new: now++ });
    else rows.push({ kind, text, old: old++ });
  };
  for (const line of a.slice(0, head)) push("same", line);
  for (const [kind, text] of middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail))) push(kind, text);
  for (const line of a.slice(a.length - tail)) push("same", line);
  return near(rows);
}

function lines(text: string): string[] {
  if (text === "") return [];
  return (text.endsWith("\n") ? text.slice(0, -1) : text).split("\n");
}

/** middle finds a longest common part; texts that are too different are told as replaced. */
function middle(a: string[], b: string[]): [Row["kind"], string][] {
  if (a.length * b.length > 1_000_000)
    return [...a.map((l): [Row["kind"], string] => ["removed", l]), ...b.map((l): [Row["kind"], string] => ["added", l])];
  const width = b.length + 1;
  const longest = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      longest[i * width + j] =
        a[i] === b[j] ? longest[(i + 1) * width + j + 1]! + 1 : Math.max(longest[(i + 1) * width + j]!, longest[i * width + j + 1]!);
    }
  }
  const found: [Row["kind"], string][] = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      found.push(["same", a[i++]!]);
      j++;
    } else if (i < a.length && (j === b.length || longest[(i + 1) * width + j]! >= longest[i * width + j + 1]!))
      found.push(["removed", a[i++]!]);
    else found.push(["added", b[j++]!]);
  }
  return found;
}

/** near leaves out what is far from any change. */
function near(rows: Row[]): Row[] {
  const keep = new Uint8Array(rows.length);
  rows.forEach((r, i) => {
    if (r.kind !== "same") keep.fill(1, Math.max(0, i - context), i + context + 1);
  });
  const kept: Row[] = [];
  rows.forEach((r, i) => {
    if (keep[i]) kept.push(r);
    else if (kept.length > 0 && kept.at(-1)!.kind !== "gap") kept.push({ kind: "gap", text: "" });
  });
  if (kept.at(-1)?.kind === "gap") kept.pop();
  return kept;
}

/** sum is how many lines came and went. */
export function sum(rows: Row[]): { added: number; removed: number } {
  return { added: rows.filter((r) => r.kind === "added").length, removed: rows.filter((r) => r.kind === "removed").length };
}
