// @vitest-environment jsdom
import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { tabStorage } from "../lib/storage";
import { router } from "../lib/router.svelte";
import { type Settings, session } from "../lib/session.svelte";
import { all, click, descriptionOf, leave, press, refused, render, server, soon, the, type, words } from "../testing/page";
import NewConversation from "./NewConversation.svelte";

const create = "POST /api/conversations";

beforeEach(() => {
  tabStorage.remove("deckhand-draft:");
  session.settings = { provider_tokens_set: { github: null } } as unknown as Settings;
  server.on(create, () => ({ conversation_id: "c9" }));
  server.on("GET /api/user/repositories", () => [
    { full_name: "octo/app", git_provider: "github", main_branch: "main" },
    { full_name: "octo/site", git_provider: "github", main_branch: "trunk" },
  ]);
  server.on("GET /api/user/repository/branches", () => [{ name: "main" }, { name: "fix" }]);
});
afterEach(() => {
  router.go("/");
  session.settings = undefined;
});

const task = () => the("textbox", "Task") as HTMLTextAreaElement;
const start = () => the("button", /^Start/) as HTMLButtonElement;

/** open opens a picker and waits for what it offers. */
async function open(name: string): Promise<HTMLElement> {
  click(the("button", new RegExp(`^${name}: `)));
  await soon(() => expect(all("option").length).toBeGreaterThan(0));
  return the("combobox", name);
}

describe("a new conversation", () => {
  it("starts with its task and is shown then", async () => {
    render(NewConversation, {});
    type(task(), "\n  Fix the build ");
    click(start());
    await soon(() => expect(router.path).toBe("/conversations/c9"));
    expect(server.to(create)).toEqual([{ initial_user_msg: "  Fix the build" }]);
    expect(task().value).toBe("");
  });

  it("needs a task", () => {
    render(NewConversation, {});
    expect(start().disabled).toBe(true);
    type(task(), "  ");
    expect(start().disabled).toBe(true);
    type(task(), "Fix");
    expect(start().disabled).toBe(false);
  });

  it("starts with Ctrl+Enter", async () => {
    render(NewConversation, {});
    type(task(), "Fix");
    press("Enter", task(), { ctrlKey: true });
    await soon(() => expect(server.to(create)).toHaveLength(1));
  });

  it("keeps its draft", () => {
    render(NewConversation, {});
    type(task(), "not yet");
    leave();
    render(NewConversation, {});
    expect(task().value).toBe("not yet");
  });

  it("shows what the server refuses at its field, and keeps the draft", async () => {
    server.on(create, () => refused("repository", "octo/app was not found."));
    render(NewConversation, {});
    type(task(), "Fix");
    click(start());
    await soon(() => expect(words(the("alert"))).toBe("octo/app was not found."));
    expect(descriptionOf(the("button", /^Repository: /))).toBe("octo/app was not found.");
    expect(task().value).toBe("Fix");
    expect(router.path).toBe("/");
  });

  it("sends no budget that is not a number", () => {
    render(NewConversation, {});
    type(task(), "Fix");
    click(the("button", "Options"));
    type(the("textbox", "Budget (US dollars)"), "much");
    click(start());
    expect(descriptionOf(the("textbox", "Budget (US dollars)"))).toBe("Enter a number, 0 or more.");
    expect(server.to(create)).toEqual([]);
  });
});

describe("a command as the task", () => {
  const at = "/api/conversations/c9";
  beforeEach(() => {
    server.on(`PUT ${at}/overrides`, () => ({}));
    server.on(`POST ${at}/message`, () => ({}));
    server.on(`DELETE ${at}`, () => ({}));
    server.on(`GET ${at}/commands`, () => ({
      commands: [{ name: "fix", description: "", argument_hint: "", source: "settings", file: null }],
    }));
    server.on(`POST ${at}/commands`, () => ({ success: true }));
    render(NewConversation, {});
  });
  const send = (text: string) => {
    type(task(), text);
    click(start());
  };

  it("/plan starts in plan mode", async () => {
    send("/plan fix it");
    await soon(() => expect(router.path).toBe("/conversations/c9"));
    expect(server.to(`PUT ${at}/overrides`)).toEqual([{ llm_model: null, max_budget_per_task: null, plan_mode: true }]);
    expect(server.to(`POST ${at}/message`)).toEqual([{ message: "fix it", image_urls: [] }]);
  });

  it("that is the user's own is run", async () => {
    send("/fix 12 now");
    await soon(() => expect(router.path).toBe("/conversations/c9"));
    expect(server.to(`POST ${at}/commands`)).toEqual([{ name: "fix", arguments: "12 now", image_urls: null, file_urls: null }]);
    expect(server.to(`POST ${at}/message`)).toEqual([]);
  });

  it("that does not exist is asked about, and leaves no conversation", async () => {
    send("/fixx 12");
    await soon(() => expect(words(the("alert"))).toContain("No command /fixx. Did you mean /fix?"));
    expect(server.to(`DELETE ${at}`)).toHaveLength(1);
    expect(router.path).toBe("/");
    click(the("button", "Run /fix"));
    await soon(() => expect(server.to(`POST ${at}/commands`)).toHaveLength(1));
  });

  it("that does not exist can be sent anyway", async () => {
    send("/odd words");
    await soon(() => click(the("button", "Send anyway")));
    await soon(() => expect(server.to(create).at(-1)).toEqual({ initial_user_msg: "/odd words" }));
  });

  it.each([
    ["/undo", "/undo works only in a conversation."],
    ["/plan", "Enter the task after /plan."],
    ["/", "Enter the name of a command after the slash."],
  ])("%s is refused", async (text, why) => {
    send(text);
    await soon(() => expect(words(the("alert"))).toBe(why));
    expect(server.to(create)).toEqual([]);
    type(task(), `${text} more`);
    expect(all("alert")).toEqual([]);
  });

  it("/model chooses the model", async () => {
    send("/model scripted/slow");
    await soon(() => expect(task().value).toBe(""));
    expect(server.to(create)).toEqual([]);
    expect(all("textbox", "Budget (US dollars)")).toHaveLength(1);
  });
});

describe("the repository picker", () => {
  it("offers repositories, and branches of the chosen one", async () => {
    render(NewConversation, {});
    expect(all("button", /^Branch: /)).toEqual([]);
    const field = await open("Repository");
    expect(document.activeElement).toBe(field);
    expect(all("option").map((o) => words(o))).toEqual(["octo/app GitHub", "octo/site GitHub"]);
    click(the("option", /octo\/app/));
    expect(all("dialog")).toEqual([]);
    expect(document.activeElement).toBe(the("button", "Repository: octo/app"));
    await open("Branch");
    click(the("option", "fix"));
    type(task(), "Fix");
    click(start());
    await soon(() =>
      expect(server.to(create)).toEqual([
        { repository: "octo/app", git_provider: "github", selected_branch: "fix", initial_user_msg: "Fix" },
      ]),
    );
  });

  it("is used from the keyboard", async () => {
    render(NewConversation, {});
    const field = await open("Repository");
    press("ArrowDown", field);
    expect(field.getAttribute("aria-activedescendant")).toBe(the("option", /octo\/site/).id);
    press("Enter", field);
    expect(the("button", "Repository: octo/site")).toBeTruthy();
  });

  it("closes with Escape and chooses nothing", async () => {
    render(NewConversation, {});
    press("Escape", await open("Repository"));
    expect(all("dialog")).toEqual([]);
    expect(document.activeElement).toBe(the("button", "Repository: No repository"));
  });

  it("goes back to no repository", async () => {
    render(NewConversation, {});
    await open("Repository");
    click(the("option", /octo\/app/));
    await open("Repository");
    click(the("option", "No repository"));
    expect(the("button", "Repository: No repository")).toBeTruthy();
    expect(all("button", /^Branch: /)).toEqual([]);
  });

  it("says why it could not ask", async () => {
    server.on("GET /api/user/repositories", () => Response.json("The token was refused.", { status: 401 }));
    render(NewConversation, {});
    click(the("button", /^Repository: /));
    await soon(() => expect(words(the("status"))).toBe("The token was refused."));
  });
});
