// Where the person is. Paths are below the page's <base>, so that the program works
// behind a proxy under a path.

const base = new URL(document.baseURI).pathname.replace(/\/$/, "");

function here(): string {
  const path = location.pathname.slice(base.length) || "/";
  try {
    return decodeURIComponent(path);
  } catch {
    return path; // mistyped: no such page
  }
}

class Router {
  path = $state(here());
  query = $state.raw(new URLSearchParams(location.search));
  /** The same as it is written in the address: decoded, a path may read as another site's. */
  address = "";
  /** Asked before the page is left, with the path that is meant; true lets go. Forms with unsaved changes set it. */
  guard: ((to: string) => boolean) | undefined;

  constructor() {
    this.read();
    addEventListener("popstate", () => {
      if (this.guard && !this.guard(here())) {
        history.pushState(null, "", this.href(this.address));
        return;
      }
      this.read();
    });
    addEventListener("beforeunload", (e) => {
      if (this.guard) e.preventDefault();
    });
    addEventListener("click", (e) => this.clicked(e));
  }

  /** href is the address of a path of the page, for links. */
  href(path: string): string {
    return base + path;
  }

  go(path: string, replace = false): void {
    if (this.guard && !this.guard(path)) return;
    history[replace ? "replaceState" : "pushState"](null, "", this.href(path));
    this.read();
    scrollTo(0, 0);
  }

  private read(): void {
    this.guard = undefined;
    this.path = here();
    this.address = (location.pathname.slice(base.length) || "/") + location.search;
    this.query = new URLSearchParams(location.search);
  }

  /** Links within the page are followed without reloading it. */
  private clicked(e: MouseEvent): void {
    if (e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
    const a = (e.target as Element).closest?.("a");
    if (!a || a.target || a.hasAttribute("download") || a.origin !== location.origin) return;
    if (!a.pathname.startsWith(base + "/") || a.dataset.outside !== undefined) return;
    e.preventDefault();
    this.go(a.pathname.slice(base.length) + a.search + a.hash);
  }
}

export const router = new Router();
