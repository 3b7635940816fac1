// What somebody has open of a workspace. It outlives the panel, so that a look at another
// panel costs nobody their changes.
import { OpenFile } from "./open-file.svelte";
import { Tree } from "./tree.svelte";

class Desk {
  readonly tree: Tree;
  file = $state.raw<OpenFile | undefined>();

  constructor(readonly id: string) {
    this.tree = new Tree(id);
  }

  open(path: string): void {
    this.file = new OpenFile(this.id, path);
    void this.file.read();
  }

  close(): void {
    this.file = undefined;
  }
}

export type { Desk };

const desks = new Map<string, Desk>();

export function desk(id: string): Desk {
  const found = desks.get(id) ?? new Desk(id);
  desks.set(id, found);
  return found;
}

/** clear forgets what is open: the person has left it. */
export function clear(id: string): void {
  desks.delete(id);
}
