// Amounts of data in words.
import { language } from "../lib/i18n.svelte";

// Binary units, like limits in flags and settings: 4G is 4 GiB.
const units = ["B", "KiB", "MiB", "GiB", "TiB"];

/** size is a number of bytes, short, as the person's language writes it. */
export function size(bytes: number): string {
  let n = bytes;
  let unit = 0;
  while (n >= 1024 && unit < units.length - 1) {
    n /= 1024;
    unit++;
  }
  return `${language.number(n, { maximumFractionDigits: unit === 0 || n >= 100 ? 0 : 1 })} ${units[unit]}`;
}
