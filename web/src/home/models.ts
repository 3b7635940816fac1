// Finding a model among the thousands that there are.

const shown = 50;

/** matching are the models with all the words in their names; those of the provider in use come first. */
export function matching(all: string[], text: string, provider: string): string[] {
  const words = text
    .toLowerCase()
    .split(/[\s/]+/)
    .filter(Boolean);
  const found = all.filter((m) => words.every((w) => m.toLowerCase().includes(w)));
  const ours = (m: string) => (m.startsWith(provider + "/") ? 0 : 1);
  return found.sort((a, b) => ours(a) - ours(b) || rank(a, words) - rank(b, words)).slice(0, shown);
}

/** rank is 0 for a name that begins with what was typed, so that short names are not buried. */
function rank(model: string, words: string[]): number {
  const name = model.slice(model.indexOf("/") + 1).toLowerCase();
  return words[0] && name.startsWith(words.at(-1)!) ? 0 : 1;
}
