// The editor as this page uses it: its looks come from the colours of the page, and the
// colours of code from the highlighter that the chat has too.
import { type Extension, RangeSetBuilder, StateEffect, StateField, EditorState } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, ViewPlugin, type ViewUpdate } from "@codemirror/view";

import { highlight } from "../conversation/highlight";
import { language, t } from "../lib/i18n.svelte";
import { spans } from "./highlight-spans";

const nonce = document.querySelector('meta[name="csp-nonce"]')?.getAttribute("content") ?? "";

/** marked sets words apart; the ground stays light enough for every colour of code. */
const marked = (colour: string) => ({
  background: `color-mix(in oklab, ${colour} 9%, transparent)`,
  boxShadow: `inset 0 -2px 0 color-mix(in oklab, ${colour} 55%, transparent)`,
});

const looks = EditorView.theme({
  "&": { color: "var(--ink)", backgroundColor: "var(--paper)", fontSize: "0.8125rem", height: "100%" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--font-mono)", lineHeight: "1.55" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-content:focus-visible": { outlineOffset: "-2px" },
  ".cm-cursor, .cm-dropCursor": { borderLeftColor: "var(--ink)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    background: "color-mix(in oklab, var(--sea) 28%, transparent)",
  },
  ".cm-activeLine": { backgroundColor: "color-mix(in oklab, var(--sea) 6%, transparent)" },
  ".cm-gutters": { backgroundColor: "var(--paper)", color: "var(--soft)", borderRight: "1px solid var(--line)" },
  ".cm-activeLineGutter": { backgroundColor: "var(--raised)", color: "var(--ink)" },
  ".cm-panels": { backgroundColor: "var(--raised)", color: "var(--ink)" },
  ".cm-panels-bottom": { borderTop: "1px solid var(--line)" },
  ".cm-panel input, .cm-panel button, .cm-panel .cm-textfield, .cm-panel .cm-button": {
    backgroundColor: "var(--paper)",
    backgroundImage: "none",
    color: "var(--ink)",
    border: "1px solid var(--edge)",
    borderRadius: "4px",
    minHeight: "24px",
  },
  ".cm-searchMatch": { backgroundColor: "var(--warn-wash)", outline: "1px solid var(--warn)" },
  ".cm-selectionMatch, &.cm-focused .cm-matchingBracket": { backgroundColor: "var(--sea-wash)" },
  ".cm-tooltip": { backgroundColor: "var(--raised)", borderColor: "var(--line)", color: "var(--ink)" },
  // Differences: the same two colours as everywhere, and a line below the words.
  "&.cm-merge-a .cm-changedLine, .cm-deletedChunk": { backgroundColor: "var(--bad-wash)" },
  "&.cm-merge-b .cm-changedLine, .cm-inlineChangedLine": { backgroundColor: "var(--good-wash)" },
  "&.cm-merge-a .cm-changedText, & .cm-deletedChunk .cm-deletedText, &.cm-merge-b .cm-deletedText": marked("var(--bad)"),
  "&.cm-merge-b .cm-changedText": marked("var(--good)"),
  "&.cm-merge-a .cm-changedLineGutter, & .cm-deletedLineGutter": { background: "var(--bad)" },
  "&.cm-merge-b .cm-changedLineGutter, .cm-inlineChangedLineGutter": { background: "var(--good)" },
  ".cm-collapsedLines": {
    background: "var(--raised)",
    color: "var(--soft)",
    fontFamily: "var(--font-sans)",
    fontSize: "0.75rem",
    paddingBlock: "4px",
  },
  ".cm-collapsedLines:before, .cm-collapsedLines:after": { content: '"⋯"' },
});

const setColours = StateEffect.define<DecorationSet>();

const colours = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(now, change) {
    for (const effect of change.effects) if (effect.is(setColours)) return effect.value;
    return now.map(change.changes);
  },
  provide: (field) => EditorView.decorations.from(field),
});

/** Typing is coloured a moment later: the whole text is read anew. */
const pause = 200;

/** coloured colours a text as the kind of file that its name says. */
function coloured(path: string): Extension {
  const plugin = ViewPlugin.define((view) => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let gone = false;

    async function read(): Promise<void> {
      const doc = view.state.doc;
      const html = await highlight(doc.toString(), path).catch(() => undefined); // a text without colours is a text
      if (html === undefined || gone || view.state.doc !== doc) return;
      const made = new RangeSetBuilder<Decoration>();
      for (const s of spans(html)) made.add(s.from, s.to, Decoration.mark({ class: s.style }));
      view.dispatch({ effects: setColours.of(made.finish()) });
    }

    void read();
    return {
      update(u: ViewUpdate) {
        if (!u.docChanged) return;
        clearTimeout(timer);
        timer = setTimeout(read, pause);
      },
      destroy() {
        gone = true;
        clearTimeout(timer);
      },
    };
  });
  return [colours, plugin];
}

/** dressed is what every editor of this page has. */
export function dressed(path: string, label: string): Extension {
  return [
    looks,
    coloured(path),
    EditorView.cspNonce.of(nonce),
    EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
    EditorState.phrases.of({
      "$ unchanged lines": t("workspace.unchanged", { n: "$" }),
      Find: t("workspace.code.find"),
      next: t("workspace.code.next"),
      previous: t("workspace.code.previous"),
      all: t("workspace.code.all"),
      "match case": t("workspace.code.case"),
      regexp: t("workspace.code.regexp"),
      "by word": t("workspace.code.word"),
      Replace: t("workspace.code.replace"),
      replace: t("workspace.code.replace"),
      "replace all": t("workspace.code.replaceall"),
      close: t("close"),
    }),
    EditorView.editorAttributes.of({ lang: language.code }),
  ];
}

/** still is an editor that shows and does not take: it can be reached and scrolled by keyboard. */
export const still: Extension = [
  EditorState.readOnly.of(true),
  EditorView.editable.of(false),
  EditorView.contentAttributes.of({ role: "textbox", "aria-multiline": "true", "aria-readonly": "true" }),
];
