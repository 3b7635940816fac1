// How diffs are shown: split or unified. The choice is stored in this browser; without one, what fits.
import { browserStorage } from "../lib/storage";

const place = "deckhand-diff";
/** The width in pixels from which a split diff fits. */
const roomy = 720;

export type Arrangement = "beside" | "below";

class Arrangements {
  private wanted = $state(browserStorage.get(place));

  /** split reports whether a diff of a width is shown split. */
  split(width: number): boolean {
    return this.wanted ? this.wanted === "beside" : width >= roomy;
  }

  choose(how: Arrangement): void {
    this.wanted = how;
    browserStorage.set(place, how);
  }
}

export const arrangements = new Arrangements();
