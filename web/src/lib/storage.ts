// Storage in the browser. It may be forbidden or full: values are then kept in memory until
// the page is left.

class BrowserStorage {
  private memory = new Map<string, string>();

  /** Even access to the storage may be forbidden, so it is asked for when it is needed. */
  constructor(private readonly storage: () => Storage) {}

  get(name: string): string | null {
    const value = this.memory.get(name);
    if (value !== undefined) return value;
    try {
      return this.storage().getItem(name);
    } catch {
      return null;
    }
  }

  /** set reports whether the value survives a reload of the page. */
  set(name: string, value: string): boolean {
    this.remove(name); // an old value must not stay if the new one does not fit
    try {
      this.storage().setItem(name, value);
      return true;
    } catch {
      this.memory.set(name, value);
      return false;
    }
  }

  remove(name: string): void {
    this.memory.delete(name);
    try {
      this.storage().removeItem(name);
    } catch {
      // nothing is stored there
    }
  }
}

/** Shared by all tabs, and kept when the browser is closed. */
export const browserStorage = new BrowserStorage(() => localStorage);
/** For this tab only, until it is closed. */
export const tabStorage = new BrowserStorage(() => sessionStorage);
