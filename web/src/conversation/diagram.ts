// Mermaid diagrams as pictures. A picture runs no script and loads nothing, whatever the diagram
// says. This file is loaded when a message has a diagram.
import "@mermaid-js/tiny";

interface Mermaid {
  initialize(config: object): void;
  render(id: string, text: string, into?: Element): Promise<{ svg: string }>;
}
const mermaid = (globalThis as unknown as { mermaid: Mermaid }).mermaid;

let made = 0;
/** Diagrams are drawn one after the other: the library has one state. */
let last: Promise<unknown> = Promise.resolve();

const longest = 20_000;

export interface Picture {
  url: string;
  width: number;
  height: number;
}

/** draw is a diagram as a picture; undefined if it cannot be read. */
export function draw(text: string, dark: boolean): Promise<Picture | undefined> {
  const next = last.then(() => render(text, dark)).catch(() => undefined);
  last = next;
  return next;
}

async function render(text: string, dark: boolean): Promise<Picture | undefined> {
  if (text.length > longest) return undefined;
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: "strict",
    theme: dark ? "dark" : "default",
    htmlLabels: false,
    flowchart: { htmlLabels: false },
    suppressErrorRendering: true,
    maxTextSize: longest,
    maxEdges: 300,
    // A diagram must not change these rules for itself.
    secure: ["secure", "securityLevel", "startOnLoad", "maxTextSize", "maxEdges", "htmlLabels", "flowchart", "suppressErrorRendering"],
  });
  const place = document.createElement("div");
  place.className = "diagram-workshop";
  document.body.append(place);
  const restore = withNonce();
  try {
    const { svg } = await mermaid.render(`diagram-${++made}`, text, place);
    const size = /viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ([\d.]+)"/.exec(svg);
    const width = Math.ceil(Number(size?.[1] ?? 600));
    const height = Math.ceil(Number(size?.[2] ?? 300));
    const sized = svg.replace(/<svg /, `<svg height="${height}" `).replace(/width="100%"/, `width="${width}"`);
    return { url: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(sized)}`, width, height };
  } finally {
    restore();
    place.remove();
  }
}

/** withNonce gives styles that are made meanwhile the nonce without which the page's policy ignores them. */
function withNonce(): () => void {
  const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";
  const make = document.createElement;
  document.createElement = function (this: Document, name: string, options?: ElementCreationOptions) {
    const made = make.call(this, name, options);
    if (name.toLowerCase() === "style") made.setAttribute("nonce", nonce);
    return made;
  } as typeof document.createElement;
  return () => (document.createElement = make);
}
