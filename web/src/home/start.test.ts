import { beforeEach, describe, expect, it, vi } from "vitest";

import type { Attachment } from "./attach";
import type { Task } from "./start";

/** What was asked for, as method and path with the body, and how the server answers. */
let asked: [string, unknown][] = [];
let answers: Record<string, { status: number; body: unknown }> = {};
beforeEach(() => {
  asked = [];
  answers = {};
});

// The client looks at both when it is made.
vi.stubGlobal("document", { baseURI: "http://deckhand.test/" });
vi.stubGlobal("fetch", async (request: Request) => {
  const name = `${request.method} ${new URL(request.url).pathname}`;
  const form = request.headers.get("Content-Type")?.startsWith("multipart/");
  const text = form ? "" : await request.text();
  asked.push([name, form ? (await request.formData()).getAll("files").map((f) => (f as File).name) : text && JSON.parse(text)]);
  const { status, body } = answers[name] ?? {
    status: 200,
    body: { conversation_id: "new", uploaded_files: ["/workspace/notes.txt"], skipped_files: [] },
  };
  return Response.json(body, { status });
});
const { start, faults } = await import("./start");
const { ApiError } = await import("../lib/api");

const task: Task = { text: "Fix it", instructions: " ", repository: null, branch: "", model: "", budget: null, attachments: [] };
const image: Attachment = { id: "1", name: "a.png", size: 3, image: true, url: "data:image/png;base64,AAAA" };
const file: Attachment = { id: "2", name: "notes.txt", size: 5, image: false, url: "data:text/plain;base64,aGVsbG8=" };
const paths = (text: string, list: string[]) => `${text} (${list.join(", ")})`;

describe("begin", () => {
  it("is one request where that is enough", async () => {
    const repository = { full_name: "ada/engine", git_provider: "gitea", main_branch: "main" };
    expect(await start({ ...task, instructions: "Be brief.", repository, branch: "dev", attachments: [image] }, paths)).toBe("new");
    expect(asked).toEqual([
      [
        "POST /api/conversations",
        {
          initial_user_msg: "Fix it",
          image_urls: [image.url],
          repository: "ada/engine",
          git_provider: "gitea",
          selected_branch: "dev",
          conversation_instructions: "Be brief.",
        },
      ],
    ]);
  });

  it("gives files and choices before the task", async () => {
    await start({ ...task, model: "scripted/slow", budget: 0, attachments: [file, image] }, paths);
    expect(asked).toEqual([
      ["POST /api/conversations", {}],
      ["PUT /api/conversations/new/overrides", { llm_model: "scripted/slow", max_budget_per_task: 0 }],
      ["POST /api/conversations/new/upload-files", ["notes.txt"]],
      ["POST /api/conversations/new/message", { message: "Fix it (/workspace/notes.txt)", image_urls: [image.url] }],
    ]);
  });

  it("turns plan mode on before the task", async () => {
    await start({ ...task, plan: true }, paths);
    expect(asked).toEqual([
      ["POST /api/conversations", {}],
      ["PUT /api/conversations/new/overrides", { llm_model: null, max_budget_per_task: null, plan_mode: true }],
      ["POST /api/conversations/new/message", { message: "Fix it", image_urls: [] }],
    ]);
  });

  it.each([
    [
      "a choice is refused",
      "PUT /api/conversations/new/overrides",
      400,
      { message: "No key.", msg_id: "CONFIGURATION$MODEL_UNAVAILABLE" },
      { model: "No key." },
    ],
    [
      "a file is refused",
      "POST /api/conversations/new/upload-files",
      200,
      { uploaded_files: [], skipped_files: [{ name: "notes.txt", reason: "no room" }] },
      { files: "notes.txt: no room" },
    ],
    [
      "the message is refused",
      "POST /api/conversations/new/message",
      422,
      { detail: [{ loc: ["body", "image_urls", 0], msg: "Too long.", type: "x" }] },
      { images: "Too long." },
    ],
  ])("leaves nothing behind when %s", async (_, name, status, body, expected) => {
    answers[name] = { status, body };
    const err = await start({ ...task, model: "other/model", attachments: [file] }, paths).catch((e: unknown) => e);
    expect(faults(err)).toEqual(expected);
    expect(asked.at(-1)![0]).toBe("DELETE /api/conversations/new");
  });
});

describe("faults", () => {
  it("are at their fields", () => {
    const err = new ApiError(
      422,
      "",
      "",
      [
        { loc: ["body", "selected_branch"], msg: "No such branch.", type: "x" },
        { loc: ["body", "odd"], msg: "Odd.", type: "x" },
      ],
      "",
    );
    expect(faults(err)).toEqual({ branch: "No such branch.", "": "Odd." });
    expect(faults(new ApiError(400, "No access.", "STATUS$GIT_PROVIDER_AUTHENTICATION_ERROR", [], ""))).toEqual({
      repository: "No access.",
    });
    expect(faults(new TypeError("offline"))).toEqual({ "": "offline" });
  });
});
