// Ends of lines. An editor that does not mind them would rewrite every line of a file.

/** separator is what parts a text into lines so that joining them again gives the same text. */
export function separator(text: string): "\n" | "\r\n" {
  return text.includes("\r\n") && !/(^|[^\r])\n/.test(text) ? "\r\n" : "\n";
}

/** sameBut is whether two texts differ in the ends of their lines alone. */
export function sameBut(a: string, b: string): boolean {
  const plain = (text: string) => text.replaceAll("\r\n", "\n");
  return a !== b && plain(a) === plain(b);
}
