// Mermaid diagrams as pictures. They are drawn in a frame that can do nothing else, and a picture
// runs no script and loads nothing. This file is loaded when a message has a diagram.
import library from "@mermaid-js/tiny/dist/mermaid.tiny.js?url";

export interface Picture {
  url: string;
  width: number;
  height: number;
}

/** So long a diagram may take, in ms: then its source is shown. */
const patience = 20_000;

let drawn = 0;
let frame: Promise<Window> | undefined;

/** workshop is the frame, once it listens. */
function workshop(): Promise<Window> {
  frame ??= new Promise((done) => {
    const element = document.createElement("iframe");
    element.title = "Mermaid";
    element.tabIndex = -1;
    element.className = "diagram-workshop";
    element.setAttribute("aria-hidden", "true");
    element.setAttribute("sandbox", "allow-scripts");
    element.src = new URL("ui/diagram.html", document.baseURI).href;
    addEventListener("message", function ready(e) {
      if (e.source !== element.contentWindow) return;
      removeEventListener("message", ready);
      done(element.contentWindow!);
    });
    document.body.append(element);
  });
  return frame;
}

/** draw is a diagram as a picture; undefined if it cannot be drawn. */
export async function draw(text: string): Promise<Picture | undefined> {
  const id = ++drawn;
  const from = await workshop();
  const svg = await new Promise<unknown>((done) => {
    const timer = setTimeout(() => finish(undefined), patience);
    const answered = (e: MessageEvent) => e.source === from && e.data?.id === id && finish(e.data.svg);
    function finish(found: unknown): void {
      clearTimeout(timer);
      removeEventListener("message", answered);
      done(found);
    }
    addEventListener("message", answered);
    from.postMessage({ id, text, address: new URL(library, document.baseURI).href }, "*");
  });
  return typeof svg === "string" ? picture(svg) : undefined;
}

/** picture gives the drawing the size that it has. */
function picture(svg: string): Picture {
  const size = /viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ([\d.]+)"/.exec(svg);
  const [width, height] = [Math.ceil(Number(size?.[1] ?? 600)), Math.ceil(Number(size?.[2] ?? 300))];
  const sized = svg.replace(
    /^<svg([^>]*)>/,
    (_, rest: string) => `<svg${rest.replace(/\s(?:width|height|style)="[^"]*"/g, "")} width="${width}" height="${height}">`,
  );
  return { url: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(sized)}`, width, height };
}
