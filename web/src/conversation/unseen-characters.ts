// Characters that are invisible or change the order of others: with them a command can look
// like another one.

const unseen =
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/** revealed splits a text. Each second part stands for an invisible character: its code point. */
export function revealed(text: string): string[] {
  const parts: string[] = [];
  let from = 0;
  for (const found of text.matchAll(unseen)) {
    parts.push(text.slice(from, found.index), `U+${found[0].codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`);
    from = found.index + found[0].length;
  }
  return [...parts, text.slice(from)];
}
