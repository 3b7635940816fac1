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
    confirmation_mode: true,
    security_analyzer: "llm",
    enable_default_condenser: true,
    llm_model: "acme/large",
    llm_api_key_set: true,
  };
  session.settings = stored as Settings;
  server.on("GET /api/options/agents", () => ["CodeActAgent", "ReadOnlyAgent"]);
  server.on("GET /api/options/security-analyzers", () => ["llm", "rules"]);
  server.on("GET /api/settings", () => stored);
  server.on(save, ({ body }) => {
    stored = { ...stored, ...(body as Partial<Settings>) };
    return {};
  });
});
afterEach(() => (session.settings = undefined));

/** show renders a section, once the choices that the server knows are there. */
async function show(tab = "agent"): Promise<void> {
  render(Page, { tab });
  if (tab === "agent") await soon(() => expect(words(profile())).toContain("Read-only"));
}

const profile = () => the("combobox", "Agent profile") as HTMLSelectElement;
const calls = () => the("textbox", "Model calls per turn") as HTMLInputElement;
const asks = () => the("switch", "Ask before risky calls") as HTMLInputElement;
const bar = () => words(the("status"));

describe("the settings", () => {
  it("show what is stored", async () => {
    await show();
    expect(profile().selectedOptions[0]!.text).toBe("Full access (CodeActAgent)");
    expect(calls().value).toBe("50");
    expect(asks().checked).toBe(true);
    expect(bar()).toBe("");
  });

  it("send only what was changed", async () => {
    await show();
    type(calls(), "80");
    click(asks());
    expect(bar()).toContain("2 unsaved changes.");
    click(the("button", /^Save/));
    await soon(() => expect(bar()).toBe(""));
    expect(server.to(save)).toEqual([{ max_iterations: 80, confirmation_mode: false }]);
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
    const key = the("group", "API key");
    expect(words(key)).toContain("Saved");
    expect(all("textbox", "API key")).toEqual([]);
    click(the("button", "Remove", key));
    expect(words(the("group", "API key"))).toContain("Will be removed when you save");
    click(the("button", /^Save/));
    await soon(() => expect(server.to(save)).toEqual([{ llm_api_key: "" }]));
  });
});
