// Renders components into a document, as a browser would, and finds what is in it the way
// assistive technology does: by role and accessible name. Files that use it begin with
// "@vitest-environment jsdom".
import { computeAccessibleDescription, computeAccessibleName, getRole } from "dom-accessibility-api";
import { type Component, flushSync, mount, unmount } from "svelte";
import { afterEach, beforeEach, vi } from "vitest";

// What jsdom lacks, as far as components need it. There is no layout, so nothing ever resizes or scrolls.
class NoResize {
  observe(): void {}
  disconnect(): void {}
}
vi.stubGlobal("ResizeObserver", NoResize);
Element.prototype.scrollIntoView = () => {};
window.scrollTo = () => {};
HTMLDialogElement.prototype.showModal = function () {
  this.open = true;
};
HTMLDialogElement.prototype.close = function () {
  this.open = false;
  this.dispatchEvent(new Event("close"));
};

/** A request that a component made. */
export interface Sent {
  method: string;
  path: string;
  body: unknown;
}

type Answer = (sent: Sent) => unknown;

/** The server, as far as a test needs one: answers by "METHOD /path", and what was asked. */
class Server {
  sent: Sent[] = [];
  private answers = new Map<string, Answer>();

  /** on answers a request with JSON, or with a Response. */
  on(request: string, answer: Answer): void {
    this.answers.set(request, answer);
  }

  /** to is what was sent to one address. */
  to(request: string): unknown[] {
    return this.sent.filter((s) => `${s.method} ${s.path}` === request).map((s) => s.body);
  }

  async fetch(request: Request): Promise<Response> {
    const words = await request.text();
    const sent = { method: request.method, path: new URL(request.url).pathname, body: words ? (JSON.parse(words) as unknown) : undefined };
    this.sent.push(sent);
    const answer = await this.answers.get(`${sent.method} ${sent.path}`)?.(sent);
    if (answer instanceof Response) return answer;
    return answer === undefined
      ? Response.json({ message: `no answer to ${sent.method} ${sent.path}` }, { status: 404 })
      : Response.json(answer);
  }

  reset(): void {
    this.sent = [];
    this.answers.clear();
  }
}

export const server = new Server();
vi.stubGlobal("fetch", (request: Request) => server.fetch(request));

/** refused is the server's answer to a field that it does not accept. */
export const refused = (field: string, msg: string) =>
  Response.json({ detail: [{ loc: ["body", field], msg, type: "value_error" }] }, { status: 422 });

let shown: Record<string, unknown>[] = [];

beforeEach(() => server.reset());
afterEach(leave);

/** render shows a component until the test ends. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- as Svelte types props
export function render<Props extends Record<string, any>>(component: Component<Props>, props: NoInfer<Props>): void {
  shown.push(mount(component as Component, { target: document.body, props }));
  flushSync();
}

/** leave takes away everything that is shown, as going to another page does. */
export function leave(): void {
  for (const one of shown) void unmount(one);
  shown = [];
  flushSync();
  document.body.replaceChildren();
}

// No style sheets are loaded, and jsdom takes long to find that out for every element.
const plain = { getPropertyValue: (name: string) => (name === "display" ? "inline" : "") } as CSSStyleDeclaration;
const looks = { getComputedStyle: () => plain };
const hidden = '[hidden], [aria-hidden="true"], dialog:not([open]), details:not([open]) > :not(summary)';

export const nameOf = (element: Element) => computeAccessibleName(element, looks).replace(/\s+/g, " ").trim();
export const descriptionOf = (element: Element) => computeAccessibleDescription(element, looks);

/** words is the text of an element, with single spaces. */
export const words = (element: Element = document.body) => (element.textContent ?? "").replace(/\s+/g, " ").trim();

/** all are the elements with a role and a name, in order. */
export function all(role: string, name?: string | RegExp, within: Element = document.body): HTMLElement[] {
  const fits = (e: Element) => name === undefined || (typeof name === "string" ? nameOf(e) === name : name.test(nameOf(e)));
  return [...within.querySelectorAll<HTMLElement>("*")].filter((e) => getRole(e) === role && !e.closest(hidden) && fits(e));
}

/** the is the one element with a role and a name. */
export function the(role: string, name?: string | RegExp, within?: Element): HTMLElement {
  const found = all(role, name, within);
  if (found.length === 1) return found[0]!;
  const others = all(role, undefined, within).map((e) => JSON.stringify(nameOf(e)));
  throw new Error(`${found.length} elements are a ${role} named ${String(name)}. There are: ${others.join(", ") || "none"}`);
}

export function click(element: HTMLElement): void {
  element.click();
  flushSync();
}

/** type replaces the text of a field. */
export function type(field: HTMLElement, text: string): void {
  (field as HTMLInputElement).value = text;
  field.dispatchEvent(new InputEvent("input", { bubbles: true }));
  flushSync();
}

/** choose selects an option of a select by its text. */
export function choose(field: HTMLElement, text: string): void {
  const select = field as HTMLSelectElement;
  select.selectedIndex = [...select.options].findIndex((o) => o.text === text);
  select.dispatchEvent(new Event("change", { bubbles: true }));
  flushSync();
}

/** press presses a key where the focus is, or in a field. */
export function press(key: string, where: Element = document.activeElement ?? document.body, more: KeyboardEventInit = {}): void {
  where.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }));
  flushSync();
}

/** soon waits until a check holds. */
export const soon = <T>(check: () => T | Promise<T>) => vi.waitFor(check, { interval: 2, timeout: 60_000 });
