// What a terminal would show of a command's output: colours and weights, and lines that
// were written over. Everything else that a terminal understands is dropped.

export interface Span {
  text: string;
  /** Classes for weights and the sixteen named colours. */
  class: string;
  /** Colours that have no name. */
  color?: string;
  background?: string;
}

interface Look {
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
  strike: boolean;
  inverse: boolean;
  /** 0 to 15, or a CSS colour. */
  fg?: number | string;
  bg?: number | string;
}

const plain = (): Look => ({ bold: false, dim: false, italic: false, underline: false, strike: false, inverse: false });

const sequences = [
  /\x1b\[([0-9;:]*)m/, // sets how text looks
  /\x1b\[[0-?]*[ -/]*(?:([@-~])|$)/, // any other control sequence
  /\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?/, // an operating system command: titles, links
  /\x1b[PX^_][^\x1b]*(?:\x1b\\)?/, // a string for the device
  /\x1b[ -/]*[0-~]?/, // a single escape
  /[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f]/, // a control character
];
const sequence = new RegExp(sequences.map((s) => s.source).join("|"), "g");

/** ansi takes output apart into lines of spans that look alike. */
export function ansi(output: string): Span[][] {
  let look = plain();
  const lines: Span[][] = [];
  for (const raw of output.split("\n")) {
    const line = new Line();
    const source = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
    let from = 0;
    for (const found of source.matchAll(sequence)) {
      line.write(source.slice(from, found.index), look);
      from = found.index + found[0].length;
      if (found[1] !== undefined) look = styled(look, found[1]);
      else if (found[0] === "\r") line.home();
      else if (found[0] === "\b") line.back();
      else if (found[2] === "K") line.erase(found[0]);
    }
    line.write(source.slice(from), look);
    lines.push(line.spans());
  }
  return lines;
}

/** clip is the beginning of a line that is too long to be read, and says so. */
export function clip(line: Span[], most: number): Span[] {
  let left = most;
  const kept: Span[] = [];
  for (const s of line) {
    if (s.text.length > left) return [...kept, { ...s, text: s.text.slice(0, left) }, { text: " …", class: "ansi-dim" }];
    left -= s.text.length;
    kept.push(s);
  }
  return line;
}

/** Line is one line of a terminal with a cursor, so that progress bars show their last state. */
class Line {
  private parts: { text: string; look: Look }[] = [];
  private cells: { char: string; look: Look }[] | undefined;
  private cursor = 0;

  write(text: string, look: Look): void {
    if (text === "") return;
    if (!this.cells) {
      this.parts.push({ text, look });
      return;
    }
    for (const char of text) this.cells[this.cursor++] = { char, look };
  }

  home(): void {
    this.split();
    this.cursor = 0;
  }

  back(): void {
    this.split();
    this.cursor = Math.max(0, this.cursor - 1);
  }

  erase(code: string): void {
    this.split();
    if (code.includes("2")) this.cells = [];
    else if (!code.includes("1")) this.cells!.length = Math.min(this.cells!.length, this.cursor);
  }

  /** split is only done for lines that are written over: they are few. */
  private split(): void {
    if (this.cells) return;
    this.cells = this.parts.flatMap((p) => [...p.text].map((char) => ({ char, look: p.look })));
    this.cursor = this.cells.length;
  }

  spans(): Span[] {
    const parts = this.cells
      ? Array.from(this.cells, (c) => (c ? { text: c.char, look: c.look } : { text: " ", look: plain() }))
      : this.parts;
    const spans: Span[] = [];
    for (const p of parts) {
      const s = span(p.text, p.look);
      const last = spans.at(-1);
      if (last && last.class === s.class && last.color === s.color && last.background === s.background) last.text += s.text;
      else spans.push(s);
    }
    return spans;
  }
}

type Colour = Look["fg"];

/** turned is the colours of text and ground in each other's place; those of the page only if there are no others. */
const turned = ({ fg, bg }: Look): [Colour, Colour] =>
  fg === undefined && bg === undefined ? ["var(--color-paper)", "var(--color-ink)"] : [bg, fg];

function span(text: string, look: Look): Span {
  const [fg, bg] = look.inverse ? turned(look) : [look.fg, look.bg];
  const names = [
    look.bold && "ansi-bold",
    look.dim && "ansi-dim",
    look.italic && "ansi-italic",
    look.underline && "ansi-underline",
    look.strike && "ansi-strike",
    typeof fg === "number" && `ansi-fg-${fg}`,
    typeof bg === "number" && `ansi-bg-${bg}`,
  ];
  const s: Span = { text, class: names.filter(Boolean).join(" ") };
  if (typeof fg === "string") s.color = fg;
  // As with the named ones, a hint of it, so that whatever is written on it can be read.
  if (typeof bg === "string") s.background = bg.startsWith("var(") ? bg : `color-mix(in oklab, ${bg} 25%, transparent)`;
  return s;
}

function styled(before: Look, list: string): Look {
  const look = { ...before };
  const codes = list.split(/[;:]/).map((c) => Number(c || 0));
  for (let i = 0; i < codes.length; i++) {
    const c = codes[i]!;
    if (c === 0) Object.assign(look, plain(), { fg: undefined, bg: undefined });
    else if (c === 1) look.bold = true;
    else if (c === 2) look.dim = true;
    else if (c === 3) look.italic = true;
    else if (c === 4) look.underline = true;
    else if (c === 7) look.inverse = true;
    else if (c === 9) look.strike = true;
    else if (c === 22) look.bold = look.dim = false;
    else if (c === 23) look.italic = false;
    else if (c === 24) look.underline = false;
    else if (c === 27) look.inverse = false;
    else if (c === 29) look.strike = false;
    else if (c === 39) look.fg = undefined;
    else if (c === 49) look.bg = undefined;
    else if (c === 38 || c === 48) {
      const [colour, used] = extended(codes, i + 1);
      if (c === 38) look.fg = colour;
      else look.bg = colour;
      i += used;
    } else if (c >= 30 && c <= 37) look.fg = c - 30;
    else if (c >= 40 && c <= 47) look.bg = c - 40;
    else if (c >= 90 && c <= 97) look.fg = c - 90 + 8;
    else if (c >= 100 && c <= 107) look.bg = c - 100 + 8;
  }
  return look;
}

/** extended is a colour after 38 or 48, and how many codes tell it. */
function extended(codes: number[], i: number): [number | string | undefined, number] {
  if (codes[i] === 5) return [indexed(codes[i + 1] ?? 0), 2];
  if (codes[i] === 2) return [`rgb(${[1, 2, 3].map((k) => Math.min(codes[i + k] ?? 0, 255)).join(" ")})`, 4];
  return [undefined, 0];
}

/** indexed is one of the 256 colours: sixteen by name, a cube, and greys. */
function indexed(n: number): number | string | undefined {
  if (n < 0 || n > 255) return undefined;
  if (n < 16) return n;
  if (n >= 232)
    return `rgb(${Array(3)
      .fill(8 + 10 * (n - 232))
      .join(" ")})`;
  const level = (v: number) => (v === 0 ? 0 : 55 + 40 * v);
  const cube = n - 16;
  return `rgb(${level(Math.floor(cube / 36))} ${level(Math.floor(cube / 6) % 6)} ${level(cube % 6)})`;
}
