// What this browser remembers for a person. It may be forbidden to, or have no room: then it
// remembers until the page is left, and all else goes on.

class Keep {
  private here = new Map<string, string>();

  /** Even asking for the store may be forbidden. */
  constructor(private readonly store: () => Storage) {}

  get(name: string): string | null {
    const here = this.here.get(name);
    if (here !== undefined) return here;
    try {
      return this.store().getItem(name);
    } catch {
      return null;
    }
  }

  /** set says whether it will still be there after the page was loaded anew. */
  set(name: string, value: string): boolean {
    this.drop(name); // what cannot be replaced is not true any more
    try {
      this.store().setItem(name, value);
      return true;
    } catch {
      this.here.set(name, value);
      return false;
    }
  }

  drop(name: string): void {
    this.here.delete(name);
    try {
      this.store().removeItem(name);
    } catch {
      // nothing is kept there
    }
  }
}

/** For this browser, and for this tab alone. */
export const inBrowser = new Keep(() => localStorage);
export const inTab = new Keep(() => sessionStorage);
