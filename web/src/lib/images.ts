// The limits for images that are part of a message, the same wherever a message is written.

/** Bytes of an image that models are shown; the server has the same number in api.MaxImage. */
const largest = 5 << 20;

/** How large an image may be, in bytes and in MB, and how many a message may have. */
export const imageLimits = { bytes: largest, size: largest >> 20, count: 50 };

const shownToModels = /^image\/(png|jpeg|gif|webp)$/;

/** An image that a model can see; one of another kind is a file like any other. */
export function isImage(type: string): boolean {
  return shownToModels.test(type);
}
