// @vitest-environment jsdom
import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { type Settings, session } from "../lib/session.svelte";
import { all, choose, click, descriptionOf, press, refused, render, server, soon, the, type, words } from "../testing/page";
import Page from "./Settings.svelte";

const save = "POST /api/settings";
let stored: Partial<Settings>;

beforeEach(() => {
  stored = {
    language: "en",
    agent: "CodeActAgent",
    max_iterations: 50,
    approval_mode: "risky",
    enable_default_condenser: true,
    llm_model: "acme/large",
    llm_api_key_set: true,
  };
  session.settings = stored as Settings;
  server.on("GET /api/options/agents", () => ["CodeActAgent", "ReadOnlyAgent"]);
  server.on("GET /api/model-providers", () => providers());
  server.on("GET /api/models", () => ({ models: [found], total: 1, problem: null }));
  server.on("GET /api/settings", () => stored);
  server.on(save, ({ body }) => {
    stored = { ...stored, ...(body as Partial<Settings>) };
    return {};
  });
});
afterEach(() => (session.settings = undefined));

const found = {
  id: "anthropic/claude-sonnet-4-5",
  provider: "anthropic",
  input_price: 3,
  output_price: 15,
  context_window: 200_000,
  tools: true,
  images: true,
  reasoning: true,
  favourite: false,
  usable: false,
};

const provider = (id: string, name: string, more = {}) => ({
  id,
  name,
  configured: false,
  api_key_set: false,
  base_url: null,
  default_base_url: `https://${id}.example`,
  local: false,
  lists: false,
  default: false,
  usable: false,
  note: null,
  ...more,
});

const providers = (more = {}) => ({
  providers: [provider("anthropic", "Anthropic", more), provider("acme", "Acme", { default: true, usable: true })],
  default: { model: "acme/large", provider: "acme", own_key: true, usable: true },
  small_model: null,
  fallback_model: null,
  favourite_models: [],
});

/** show renders a section, once the choices that the server knows are there. */
async function show(tab = "agent"): Promise<void> {
  render(Page, { tab });
  if (tab === "agent") await soon(() => expect(words(profile())).toContain("Read-only"));
}

const profile = () => the("combobox", "Agent profile") as HTMLSelectElement;
const calls = () => the("textbox", "Model calls per turn") as HTMLInputElement;
const mode = (name: RegExp) => the("radio", name) as HTMLInputElement;
const bar = () => words(the("status"));

describe("the settings", () => {
  it("show what is stored", async () => {
    await show();
    expect(profile().selectedOptions[0]!.text).toBe("Full access (CodeActAgent)");
    expect(calls().value).toBe("50");
    expect(mode(/^Ask when risky/).checked).toBe(true);
    expect(bar()).toBe("");
  });

  it("send only what was changed", async () => {
    await show();
    type(calls(), "80");
    click(mode(/^Never ask/));
    expect(bar()).toContain("2 unsaved changes.");
    click(the("button", /^Save/));
    await soon(() => expect(bar()).toBe(""));
    expect(server.to(save)).toEqual([{ max_iterations: 80, approval_mode: "never" }]);
    expect(calls().value).toBe("80");
    expect(document.activeElement).toBe(the("heading", "Agent"));
  });

  it("are saved by Ctrl+S", async () => {
    await show();
    choose(profile(), "Read-only (ReadOnlyAgent)");
    press("s", document.body, { ctrlKey: true });
    await soon(() => expect(server.to(save)).toEqual([{ agent: "ReadOnlyAgent" }]));
  });

  it("have nothing to save once a value is as it was", async () => {
    await show();
    type(calls(), "80");
    type(calls(), "50");
    expect(bar()).toBe("");
  });

  it("are as stored after Discard", async () => {
    await show();
    type(calls(), "80");
    click(the("button", "Discard"));
    expect(calls().value).toBe("50");
    expect(server.to(save)).toEqual([]);
  });

  it("show what the server refuses at its field, until that is changed", async () => {
    server.on(save, () => refused("max_iterations", "Enter a number from 1 to 100000."));
    await show();
    type(calls(), "many");
    click(the("button", /^Save/));
    await soon(() => expect(bar()).toContain("1 invalid value."));
    expect(server.to(save)).toEqual([{ max_iterations: "many" }]);
    expect(calls().getAttribute("aria-invalid")).toBe("true");
    expect(descriptionOf(calls())).toBe("Enter a number from 1 to 100000.");
    expect(calls().value).toBe("many");
    expect(the("link", "Agent (has errors)")).toBeTruthy();
    type(calls(), "80");
    expect(calls().getAttribute("aria-invalid")).toBe("false");
    expect(bar()).not.toContain("invalid");
  });

  it("say what went wrong with no field", async () => {
    server.on(save, () => Response.json({ message: "The disk is full." }, { status: 507 }));
    await show();
    type(calls(), "80");
    click(the("button", /^Save/));
    await soon(() => expect(bar()).toContain("The disk is full."));
    expect(calls().value).toBe("80");
  });

  it("never show a key, and send one only if it was replaced or removed", async () => {
    await show("model");
    await soon(() => expect(the("group", "API key")).toBeTruthy());
    const key = the("group", "API key");
    expect(words(key)).toContain("Saved");
    expect(all("textbox", "API key")).toEqual([]);
    click(the("button", "Remove", key));
    expect(words(the("group", "API key"))).toContain("Will be removed when you save");
    click(the("button", /^Save/));
    await soon(() => expect(server.to(save)).toEqual([{ llm_api_key: "" }]));
  });

  it("store the agent's approvals with the first setting of a new user", async () => {
    session.settings = null;
    await show();
    expect(mode(/^Ask when risky/).checked).toBe(true);
    type(calls(), "80");
    click(the("button", /^Save/));
    await soon(() => expect(server.to(save)).toEqual([{ approval_mode: "risky", max_iterations: 80 }]));
  });
});

describe("the providers", () => {
  const put = "PUT /api/model-providers/anthropic";
  const dialog = () => the("dialog", "Anthropic");

  it("keep a stored key where nothing was entered, and never show one", async () => {
    server.on("GET /api/model-providers", () => providers({ configured: true, api_key_set: true, usable: true }));
    server.on(put, () => ({}));
    await show("model");
    await soon(() => expect(the("button", "Edit Anthropic")).toBeTruthy());
    click(the("button", "Edit Anthropic"));
    expect(words(the("group", "API key", dialog()))).toContain("Saved");
    expect(all("textbox", "API key", dialog())).toEqual([]);
    click(the("button", "Save", dialog()));
    await soon(() => expect(server.to(put)).toEqual([{ base_url: null }]));
  });

  it("show what the server says about a stored provider", async () => {
    server.on(put, () => ({ notes: ["The stored key was dropped."] }));
    await show("model");
    await soon(() => expect(the("button", "Set up Anthropic")).toBeTruthy());
    click(the("button", "Set up Anthropic"));
    type(the("textbox", "Base URL", dialog()) as HTMLInputElement, "https://proxy.example");
    click(the("button", "Save", dialog()));
    await soon(() => expect(server.to(put)).toEqual([{ base_url: "https://proxy.example" }]));
    await soon(() => expect(document.body.textContent).toContain("The stored key was dropped."));
  });

  it("mark favourites and choose models with their facts in sight", async () => {
    server.on("PUT /api/model-roles", () => ({}));
    await show("model");
    await soon(() => expect(the("button", "Use anthropic/claude-sonnet-4-5")).toBeTruthy());
    expect(words(the("list", "All models"))).toContain("200k context");
    expect(words(the("list", "All models"))).toContain("$3.00 / $15.00");
    click(the("button", "Favourite: anthropic/claude-sonnet-4-5"));
    await soon(() => expect(server.to("PUT /api/model-roles")).toEqual([{ favourite_models: ["anthropic/claude-sonnet-4-5"] }]));
    click(the("button", "Use anthropic/claude-sonnet-4-5"));
    expect(bar()).toContain("1 unsaved change");
  });
});
