// The connection of a terminal: bytes both ways, and what its end means.

/** Less than the server takes in one frame. */
const largest = 32 << 10;

/** pieces cuts what is typed or pasted into frames. */
export function pieces(bytes: Uint8Array): Uint8Array[] {
  const all: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += largest) all.push(bytes.subarray(at, at + largest));
  return all;
}

/** latin is what some programs ask of the mouse: one byte for each character. */
export const latin = (text: string) => Uint8Array.from(text, (c) => c.charCodeAt(0) & 255);

export type Ended = "shell" | "sandbox" | "login" | "lost";

/** ended is what a close code means; only what was lost is tried again. */
export function ended(code: number): Ended {
  switch (code) {
    case 1000:
      return "shell";
    case 1012:
      return "sandbox";
    case 4001:
      return "login";
  }
  return "lost";
}

/** fresh is a name for another terminal: main, then 2, 3 and so on, the first that is free. */
export function fresh(taken: string[]): string {
  if (!taken.includes("main")) return "main";
  let n = 2;
  while (taken.includes(`shell-${n}`)) n++;
  return `shell-${n}`;
}

/** A name that the server takes. */
export const good = /^[A-Za-z0-9_-]{1,32}$/;
