/** blob is what a data: address holds. Its kind is said anew: only what can be shown safely gets here. */
export function blob(address: string, kind: string): Blob {
  const bytes = Uint8Array.from(atob(address.slice(address.indexOf(",") + 1)), (c) => c.charCodeAt(0));
  return new Blob([bytes], { type: kind });
}
