// One clock for everything on the page that shows a running time: it ticks while something uses it.
import { now } from "../lib/now";

let users = 0;
let timer: ReturnType<typeof setInterval> | undefined;

/** The time at the last tick, in ms. */
export const ticker = $state({ now: now() });

/** tick keeps the clock running until the function that it returns is called. Use it as an effect. */
export function tick(): () => void {
  if (users++ === 0) {
    ticker.now = now();
    timer = setInterval(() => (ticker.now = now()), 1000);
  }
  return () => {
    if (--users === 0) clearInterval(timer);
  };
}
