// A text that comes in pieces, each with its place in bytes of UTF-8.

const encoder = new TextEncoder();

export class Pieces {
  text = "";
  private bytes = 0;

  /** put adds a piece; false if something before it is missing, so that it has no place yet. */
  put(offset: number, piece: string): boolean {
    if (offset > this.bytes) return false;
    if (offset < this.bytes) {
      // Told again from an earlier place, as after a lost connection.
      this.text = offset === 0 ? "" : new TextDecoder().decode(encoder.encode(this.text).subarray(0, offset));
      this.bytes = offset;
    }
    this.text += piece;
    this.bytes += encoder.encode(piece).length;
    return true;
  }
}
