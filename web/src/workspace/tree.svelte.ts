// The files of a workspace, read folder by folder as the user opens them.
import { SvelteMap, SvelteSet } from "svelte/reactivity";

import * as routes from "./routes";
import { rows } from "./tree-rows";

export class Tree {
  private read = new SvelteMap<string, string[]>();
  readonly open = new SvelteSet<string>();
  problem = $state.raw<unknown>();
  rows = $derived(rows(this.read, this.open));
  loaded = $derived(this.read.has(""));

  constructor(readonly id: string) {}

  /** refresh reads all that is open again; folders that are gone are closed. */
  async refresh(): Promise<void> {
    try {
      this.take("", await routes.list(this.id, ""));
      this.problem = undefined;
    } catch (err) {
      this.problem = err;
      return;
    }
    await Promise.all([...this.open].map((folder) => this.load(folder)));
  }

  async toggle(folder: string): Promise<void> {
    if (this.open.delete(folder)) return;
    this.open.add(folder);
    await this.load(folder);
  }

  private async load(folder: string): Promise<void> {
    try {
      this.take(folder, await routes.list(this.id, folder));
    } catch {
      this.open.delete(folder);
      this.read.delete(folder);
    }
  }

  /** The same list again changes nothing, so that rows keep their place and focus. */
  private take(folder: string, list: string[]): void {
    const before = this.read.get(folder);
    if (before?.length === list.length && before.every((path, i) => path === list[i])) return;
    this.read.set(folder, list);
  }
}
