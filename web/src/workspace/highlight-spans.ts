// The highlighter gives HTML; the editor wants places. The HTML has only spans with a
// class, and text in which a few characters are spelled as entities.

export interface Span {
  from: number;
  to: number;
  style: string;
}

const piece = /<span class="([^"]*)">|<\/span>|&(amp|lt|gt|quot|#x27);|[^<&]+|[<&]/g;

/** spans are the coloured places of a text, outer ones before those inside them. */
export function spans(html: string): Span[] {
  const found: Span[] = [];
  const open: Span[] = [];
  let at = 0;
  for (const [whole, style, entity] of html.matchAll(piece)) {
    if (style !== undefined) {
      const span = { from: at, to: at, style };
      found.push(span);
      open.push(span);
    } else if (whole === "</span>") {
      const span = open.pop();
      if (span) span.to = at;
    } else {
      at += entity ? 1 : whole.length;
    }
  }
  return found.filter((s) => s.to > s.from);
}
