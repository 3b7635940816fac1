// Whether the sidebar is open. Where it fits beside a conversation, that is remembered; elsewhere it covers the page for a moment.
import { browserStorage } from "../lib/storage";

const place = "deckhand-sidebar";

class SidebarState {
  /** From 1100 px on, the chat and the workspace fit beside it. */
  private wide = matchMedia("(min-width: 68.75rem)");
  isWide = $state(this.wide.matches);
  open = $state(this.wide.matches && browserStorage.get(place) !== "closed");

  constructor() {
    this.wide.onchange = () => {
      this.isWide = this.wide.matches;
      this.open = this.isWide && browserStorage.get(place) !== "closed";
    };
  }

  toggle(): void {
    this.open = !this.open;
    if (this.isWide) browserStorage.set(place, this.open ? "open" : "closed");
  }
}

export const sidebar = new SidebarState();
