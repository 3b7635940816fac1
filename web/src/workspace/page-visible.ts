import { createSubscriber } from "svelte/reactivity";

const subscribe = createSubscriber((update) => {
  document.addEventListener("visibilitychange", update);
  return () => document.removeEventListener("visibilitychange", update);
});

/** pageVisible reports whether the tab is in front, reactively: panels load nothing while it is not. */
export function pageVisible(): boolean {
  subscribe();
  return !document.hidden;
}
