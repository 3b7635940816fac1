// How high an item will probably be. The better the guess, the fewer items are made for
// nothing when a list is opened or scrolled fast.
import { text } from "../lib/events";
import type { Item } from "./item.svelte";

const head = 50;
const line = 20;
const charsInLine = 75;

const lines = (words: string, most: number) => {
  let count = 1;
  for (let at = words.indexOf("\n"); at >= 0 && count < most; at = words.indexOf("\n", at + 1)) count++;
  return count;
};

/** prose is the height of text that is wrapped. */
const prose = (words: string) =>
  words ? 24 * Math.max(lines(words, 300), Math.ceil(Math.min(words.length, 12_000) / charsInLine)) + 10 : 0;

/** estimate is in pixels, with the room above the item. */
export function estimate(item: Item): number {
  if (item.kind === "notice") return head;
  if (item.kind !== "tool") return head + prose(item.text) + (item.images.length > 0 ? 180 : 0);
  const words = item.display.content === "thought" ? 0 : prose(item.text);
  return words + head + body(item);
}

function body(item: Item): number {
  if (item.open === false) return 0;
  const result = item.result;
  switch (item.display.content) {
    case "command":
    case "code":
      return 20 + line * lines(result?.output ?? "", 15);
    case "file":
      return item.display.read_only ? 0 : line * lines(text(result?.details, "diff"), 25);
    case "page":
      return text(result?.details, "screenshot") ? 260 : 40;
    case "message":
      return prose(text(item.args, item.display.main));
    case "conversation":
      return 120;
    default:
      return 0;
  }
}
