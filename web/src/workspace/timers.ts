// Timers for $effect: each function returns what stops it.
import { untrack } from "svelte";

/** every calls now and then repeatedly. The effect does not depend on what the call reads. */
export function every(ms: number, call: () => void): () => void {
  untrack(call);
  const timer = setInterval(call, ms);
  return () => clearInterval(timer);
}

/** debounce calls after a pause, so that a busy agent does not cause a request for each event. */
export function debounce(ms: number, call: () => void): () => void {
  const timer = setTimeout(call, ms);
  return () => clearTimeout(timer);
}
