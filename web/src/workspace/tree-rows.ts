// The tree of files as the rows that are on the screen.

export interface Row {
  path: string;
  name: string;
  folder: boolean;
  open: boolean;
  /** How deep it is, from 1. */
  level: number;
  /** Which one of how many in its folder it is, from 1. */
  place: number;
  among: number;
}

/** rows are what is shown of the tree: folders that are open and were read show what is in them. */
export function rows(read: ReadonlyMap<string, string[]>, open: ReadonlySet<string>, folder = "", level = 1): Row[] {
  return (read.get(folder) ?? []).flatMap((path, i, all) => {
    const isFolder = path.endsWith("/");
    const bare = path.replace(/\/$/, "");
    const row = {
      path,
      name: bare.slice(bare.lastIndexOf("/") + 1),
      folder: isFolder,
      open: isFolder && open.has(path),
      level,
      place: i + 1,
      among: all.length,
    };
    return row.open ? [row, ...rows(read, open, path, level + 1)] : [row];
  });
}

/** step is the row that a key leads to from one, or undefined if it leads nowhere. */
export function step(list: Row[], at: number, key: string): number | undefined {
  const row = list[at];
  switch (key) {
    case "ArrowDown":
      return Math.min(at + 1, list.length - 1);
    case "ArrowUp":
      return Math.max(at - 1, 0);
    case "Home":
      return 0;
    case "End":
      return list.length - 1;
    case "ArrowRight":
      return row?.open && (list[at + 1]?.level ?? 0) > row.level ? at + 1 : undefined;
    case "ArrowLeft": {
      if (!row) return undefined;
      const parent = list.slice(0, at).findLastIndex((r) => r.level < row.level);
      return parent < 0 ? undefined : parent;
    }
  }
  return undefined;
}
