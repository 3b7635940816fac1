// A message as it is sent.

/** sentText drops blank lines before a message and white space behind it. Indentation of the first line stays: it may be code. */
export const sentText = (text: string) => text.replace(/^(?:[^\S\n]*\n)+/, "").trimEnd();

/** mentionOf is how a path is written in a message: in quotes if it would end at a space or another mark. */
export const mentionOf = (path: string) => (/^[^\s"'“”()]+$/.test(path) ? `@${path}` : `@"${path.replace(/["\\]/g, "\\$&")}"`);
