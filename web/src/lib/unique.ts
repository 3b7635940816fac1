/** unique returns a unique name. Browsers make UUIDs only where a page came over TLS or from the same machine. */
export const unique = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
