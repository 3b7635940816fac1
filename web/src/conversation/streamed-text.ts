// A text that arrives in pieces. The offset of a piece counts bytes of UTF-8.

const encoder = new TextEncoder();

export class StreamedText {
  text = "";
  private bytes = 0;

  /** add puts a piece at its offset; false if a piece before it is missing. */
  add(offset: number, piece: string): boolean {
    if (offset > this.bytes) return false;
    if (offset < this.bytes) {
      // The server starts again from an earlier offset after a lost connection.
      this.text = offset === 0 ? "" : new TextDecoder().decode(encoder.encode(this.text).subarray(0, offset));
      this.bytes = offset;
    }
    this.text += piece;
    this.bytes += encoder.encode(piece).length;
    return true;
  }
}
