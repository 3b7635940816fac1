// The state of the files panel of each conversation. It outlives the panel, so that unsaved
// changes are still there after a look at another panel.
import { OpenFile } from "./open-file.svelte";
import { Tree } from "./tree.svelte";

class FilesState {
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

const states = new Map<string, FilesState>();

export function filesState(id: string): FilesState {
  const found = states.get(id) ?? new FilesState(id);
  states.set(id, found);
  return found;
}

/** forgetFiles drops the state when the person leaves the conversation. */
export function forgetFiles(id: string): void {
  states.delete(id);
}
