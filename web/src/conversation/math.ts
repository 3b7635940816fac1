// Formulas as MathML, which browsers draw themselves: no fonts and no styles are needed. This
// file is loaded when a message has a formula.
import DOMPurify from "dompurify";
import katex from "katex";

const purifier = DOMPurify();

/** mathml is a formula as safe markup; undefined if it cannot be read. */
export function mathml(tex: string, display: boolean): string | undefined {
  try {
    const html = katex.renderToString(tex, {
      displayMode: display,
      output: "mathml",
      throwOnError: true,
      strict: "ignore",
      trust: false,
      maxExpand: 200,
      maxSize: 20,
    });
    // A style attribute, even one that is dropped afterwards, would be reported as a breach of the page's policy.
    return purifier.sanitize(html.replace(/ style="[^"]*"/g, ""), {
      USE_PROFILES: { mathMl: true },
      ADD_TAGS: ["semantics", "annotation"],
      FORBID_TAGS: ["annotation", "annotation-xml", "maction"],
      FORBID_ATTR: ["style", "class", "id", "href"],
    });
  } catch {
    return undefined;
  }
}
