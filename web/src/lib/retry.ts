import { unique } from "./unique";

/** A retry key: a request that is sent again with it does nothing twice. */
export const retryKey = unique;

/** The keys of requests without a response: the server may have handled them. */
const unheard = new Map<string, string>();

/**
 * once sends a request with a retry key. Who sends the same again because no answer came
 * sends it with the same key, so that it happens once even if it had been heard.
 */
export async function once<T>(request: string, send: (key: string) => Promise<T>): Promise<T> {
  const key = unheard.get(request) ?? retryKey();
  unheard.delete(request);
  try {
    return await send(key);
  } catch (err) {
    if (err instanceof TypeError) unheard.set(request, key); // as fetch fails where there is no answer
    throw err;
  }
}
