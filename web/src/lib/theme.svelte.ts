// Light, dark, or as the machine has it. Kept in this browser: it belongs to the screen. The
// server's theme.js shows it before this is loaded, and in the manual.

import { browserStorage } from "./storage";

export type Theme = "system" | "light" | "dark";

const place = "deckhand-theme";

class Themes {
  now = $state<Theme>((browserStorage.get(place) as Theme | null) ?? "system");

  constructor() {
    this.show();
  }

  use(theme: Theme): void {
    this.now = theme;
    browserStorage.set(place, theme);
    this.show();
  }

  /** toggle changes from what is seen to the other one. */
  toggle(): void {
    const dark = this.now === "dark" || (this.now === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
    this.use(dark ? "light" : "dark");
  }

  private show(): void {
    if (this.now === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = this.now;
  }
}

export const themes = new Themes();
