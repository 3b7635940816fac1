// Formats messages for sending.

/** sentText removes leading blank lines and trailing white space from a message. The indentation of the first line stays. */
export const sentText = (text: string) => text.replace(/^(?:[^\S\n]*\n)+/, "").trimEnd();

/** mentionOf returns the mention of a path, in quotes if the path contains spaces or other characters that would end the mention. */
export const mentionOf = (path: string) => (/^[^\s"'“”()]+$/.test(path) ? `@${path}` : `@"${path.replace(/["\\]/g, "\\$&")}"`);
