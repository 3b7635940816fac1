// Amounts of data in words.
import { language } from "../lib/i18n.svelte";

const units = ["byte", "kilobyte", "megabyte", "gigabyte"];

/** size is a number of bytes, short, as the person's language writes it. */
export function size(bytes: number): string {
  let n = bytes;
  let unit = 0;
  while (n >= 1000 && unit < units.length - 1) {
    n /= 1000;
    unit++;
  }
  return language.number(n, {
    style: "unit",
    unit: units[unit],
    unitDisplay: "narrow",
    maximumFractionDigits: unit === 0 || n >= 100 ? 0 : 1,
  });
}
