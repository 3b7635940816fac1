// The list of changed files, as it is shown.

/** split is the folder of a path, with its slash, and the name. */
export function split(path: string): [folder: string, name: string] {
  const at = path.replace(/\/$/, "").lastIndexOf("/") + 1;
  return [path.slice(0, at), path.slice(at)];
}

/** next is the entry that stays chosen when a list changes: the same, or the one that took its place. */
export function next<T>(before: T[], now: T[], chosen: T | undefined): T | undefined {
  if (chosen === undefined) return now[0];
  if (now.includes(chosen)) return chosen;
  return now[Math.min(Math.max(before.indexOf(chosen), 0), now.length - 1)];
}
