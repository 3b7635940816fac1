// Draws diagrams in a frame of its own, which has no origin, no cookies and no connection: what a
// diagram says can do no more than be drawn. The page that opened the frame gets the picture.
let library;

function load(address) {
  library ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = address;
    script.onload = () => done(globalThis.mermaid);
    script.onerror = () => failed(new Error("the library cannot be loaded"));
    document.head.append(script);
  });
  return library;
}

const longest = 20_000;
// A diagram must not change these rules for itself.
const rules = {
  startOnLoad: false,
  securityLevel: "strict",
  htmlLabels: false,
  suppressErrorRendering: true,
  maxTextSize: longest,
  maxEdges: 300,
};

async function draw({ id, text, address }) {
  if (text.length > longest) return undefined;
  const mermaid = await load(address);
  // On white paper in both themes of the page, which may change while the diagram is shown.
  mermaid.initialize({
    ...rules,
    theme: "neutral",
    flowchart: { htmlLabels: false },
    secure: ["secure", "flowchart", ...Object.keys(rules)],
  });
  return (await mermaid.render(`diagram-${id}`, text)).svg;
}

// One after the other: the library has one state.
let last = Promise.resolve();
addEventListener("message", (e) => {
  if (e.source !== parent) return;
  last = last
    .then(() => draw(e.data))
    .catch(() => undefined)
    .then((svg) => parent.postMessage({ id: e.data.id, svg }, "*"));
});
parent.postMessage({ ready: true }, "*");
