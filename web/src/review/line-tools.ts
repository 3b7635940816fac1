// A gutter with which people comment on lines, and revert parts of a diff.
import { getChunks, getOriginalDoc } from "@codemirror/merge";
import { type EditorState, type Extension, type Text } from "@codemirror/state";
import { EditorView, GutterMarker, gutter } from "@codemirror/view";

import type { Hunk } from "../workspace/routes";

export interface Lines {
  line: number;
  end: number;
  quote: string;
}

interface Options {
  /** The lines that have a comment. */
  commented: Set<number>;
  comment: string;
  oncomment(at: Lines): void;
  revert?: string;
  onrevert?(hunk: Hunk): void;
  /** The other document of a split view; a unified one knows it. */
  original?: Text;
}

/** span is the first line and the number of lines of a part of a text. */
function span(doc: Text, from: number, to: number): [start: number, lines: number] {
  if (from > doc.length) return [doc.lines + 1, 0];
  const start = doc.lineAt(from).number;
  if (to <= from) return [start, 0];
  return [start, doc.lineAt(Math.min(to - 1, doc.length)).number - start + 1];
}

/** pastEnd reports whether a line is what the editor shows after the last line break. */
export const pastEnd = ({ doc }: EditorState, line: number) => line === doc.lines && doc.line(line).length === 0;

/** hunks are the parts that differ, by lines. */
export function hunks(state: EditorState, original?: Text): Hunk[] {
  const found = getChunks(state);
  if (!found) return [];
  const a = original ?? getOriginalDoc(state);
  return found.chunks.map((c) => {
    const [original_start, original_lines] = span(a, c.fromA, c.toA);
    const [modified_start, modified_lines] = span(state.doc, c.fromB, c.toB);
    return { original_start, original_lines, modified_start, modified_lines };
  });
}

/** selectedLines are those that a person selected, or those from a line on. */
export function selectedLines(state: EditorState, from?: number): Lines {
  const { main } = state.selection;
  const first = state.doc.lineAt(main.from).number;
  const last = state.doc.lineAt(main.to).number;
  const chosen = !main.empty && (from === undefined || (from >= first && from <= last));
  const line = chosen ? first : (from ?? first);
  const end = chosen ? last : line;
  return { line, end, quote: state.sliceDoc(state.doc.line(line).from, state.doc.line(end).to) };
}

class Tools extends GutterMarker {
  constructor(
    private readonly line: number,
    private readonly commented: boolean,
    private readonly hunk: Hunk | undefined,
    private readonly options: Options,
  ) {
    super();
  }

  override eq(other: Tools): boolean {
    return other.line === this.line && other.commented === this.commented && JSON.stringify(other.hunk) === JSON.stringify(this.hunk);
  }

  // The gutter is hidden from screen readers and the tab key: both have the buttons above the editor.
  override toDOM(view: EditorView): Node {
    const box = document.createElement("span");
    const { hunk, options } = this;
    const button = (sign: string, label: string, kind: string, run: () => void) => {
      const made = document.createElement("button");
      made.type = "button";
      made.tabIndex = -1;
      made.textContent = sign;
      made.title = label;
      made.className = kind;
      made.onmousedown = (e) => e.preventDefault(); // the selection stays
      made.onclick = run;
      box.append(made);
    };
    if (hunk && options.onrevert && options.revert) button("↶", options.revert, "revert", () => options.onrevert?.(hunk));
    button(this.commented ? "●" : "+", options.comment, this.commented ? "comment on" : "comment", () =>
      options.oncomment(selectedLines(view.state, this.line)),
    );
    return box;
  }
}

const looks = EditorView.theme({
  ".cm-line-tools": { minWidth: "34px" },
  ".cm-line-tools .cm-gutterElement > span": { display: "flex", justifyContent: "flex-end", gap: "2px", paddingRight: "2px" },
  ".cm-line-tools button": {
    width: "15px",
    borderRadius: "3px",
    lineHeight: "1.35",
    textAlign: "center",
    cursor: "pointer",
    color: "var(--soft)",
  },
  ".cm-line-tools button.comment": { opacity: "0", color: "var(--sea)" },
  ".cm-line-tools button.comment.on, .cm-line-tools .cm-gutterElement:hover button.comment": { opacity: "1" },
  ".cm-line-tools button:hover": { background: "var(--sunken)", color: "var(--ink)" },
  "@media (hover: none)": { ".cm-line-tools button.comment": { opacity: "0.6" } },
});

export function lineTools(options: Options): Extension {
  return [
    looks,
    gutter({
      class: "cm-line-tools",
      lineMarker(view, block) {
        const { number } = view.state.doc.lineAt(block.from);
        const hunk =
          options.onrevert && hunks(view.state, options.original).find((h) => Math.min(h.modified_start, view.state.doc.lines) === number);
        if (!hunk && pastEnd(view.state, number)) return null;
        return new Tools(number, options.commented.has(number), hunk, options);
      },
      lineMarkerChange: (u) => u.docChanged || getChunks(u.startState) !== getChunks(u.state),
    }),
  ];
}
