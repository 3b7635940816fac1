// Starts a conversation. That is one request, unless there are files, a model, a budget, plan mode or a command:
// then the conversation is created first, gets those, and then its task. If a step fails, the
// conversation is deleted, so that the person can correct the form and try again.
import { ApiError, api, data, once, retryKey, type Schemas } from "../lib/api";
import { type Attachment, toFile } from "./attach";
import type { Repository } from "./git";

export interface Task {
  text: string;
  instructions: string;
  repository: Repository | null;
  branch: string;
  model: string;
  budget: number | null;
  attachments: Attachment[];
  /** Whether the agent plans first. */
  plan?: boolean;
  /** The command to run instead of sending the text. */
  command?: { name: string; args: string };
}

export type FieldName = "text" | "images" | "files" | "instructions" | "repository" | "branch" | "model" | "budget";

type Create = Schemas["CreateConversation"];

/** start returns the id of the new conversation. withFiles adds the paths of files to the text. */
export async function start(task: Task, withFiles: (text: string, paths: string[]) => string): Promise<string> {
  const files = task.attachments.filter((a) => !a.image);
  const images = task.attachments.filter((a) => a.image).map((a) => a.url);
  if (files.length === 0 && !overridden(task) && !task.command) {
    return create({ ...bodyOf(task), initial_user_msg: task.text, image_urls: images.length > 0 ? images : undefined });
  }
  const { id, text } = await prepare(task, withFiles);
  const of = { params: { path: { conversation_id: id } } };
  try {
    if (task.command) {
      const { runFirst } = await import("./command");
      await runFirst(id, task.command, images, text);
    } else
      await api.POST("/api/conversations/{conversation_id}/message", {
        params: { ...of.params, header: { "Idempotency-Key": retryKey() } },
        body: { message: text, image_urls: images },
      });
  } catch (err) {
    await api.DELETE("/api/conversations/{conversation_id}", of).catch(() => {}); // report only the first error
    throw err;
  }
  return id;
}

const overridden = (task: Task) => task.model !== "" || task.budget !== null || !!task.plan;

/** prepare creates a conversation with its files, model, budget and plan mode. It returns the ID and the
 * text of the task, and does not send it. */
export async function prepare(task: Task, withFiles: (text: string, paths: string[]) => string): Promise<{ id: string; text: string }> {
  const files = task.attachments.filter((a) => !a.image);
  const id = await create(bodyOf(task));
  const of = { params: { path: { conversation_id: id } } };
  try {
    if (overridden(task)) {
      await api.PUT("/api/conversations/{conversation_id}/overrides", {
        ...of,
        body: { llm_model: task.model || null, max_budget_per_task: task.budget, ...(task.plan ? { plan_mode: true } : {}) },
      });
    }
    return { id, text: files.length > 0 ? withFiles(task.text, await upload(id, files)) : task.text };
  } catch (err) {
    await api.DELETE("/api/conversations/{conversation_id}", of).catch(() => {}); // report only the first error
    throw err;
  }
}

/** startSuggested takes up a task of a git provider. */
export function startSuggested(task: Schemas["SuggestedTask"]): Promise<string> {
  return create({ suggested_task: task });
}

async function create(body: Create): Promise<string> {
  const made = await once(`start ${JSON.stringify(body)}`, (key) =>
    data(api.POST("/api/conversations", { params: { header: { "Idempotency-Key": key } }, body })),
  );
  return made.conversation_id;
}

export function bodyOf(task: Task): Create {
  return {
    repository: task.repository?.full_name,
    git_provider: (task.repository?.git_provider ?? undefined) as Create["git_provider"],
    selected_branch: (task.repository && task.branch) || undefined,
    conversation_instructions: task.instructions.trim() || undefined,
  };
}

async function upload(id: string, files: Attachment[]): Promise<string[]> {
  const form = new FormData();
  for (const file of files) form.append("files", toFile(file), file.name);
  const answer = await data(
    api.POST("/api/conversations/{conversation_id}/upload-files", {
      params: { path: { conversation_id: id }, header: { "Idempotency-Key": retryKey() } },
      body: form as never, // the document has no type for a form
      bodySerializer: (body: unknown) => body as FormData,
    }),
  );
  const skipped = answer.skipped_files?.[0];
  if (skipped) throw new ApiError(400, `${skipped.name}: ${skipped.reason}`, skippedFile, [], "");
  return answer.uploaded_files ?? [];
}

const skippedFile = "skipped";

// The server's names for what the page asks for.
const names: Record<string, FieldName> = {
  initial_user_msg: "text",
  message: "text",
  image_urls: "images",
  files: "files",
  conversation_instructions: "instructions",
  repository: "repository",
  git_provider: "repository",
  selected_branch: "branch",
  llm_model: "model",
  max_budget_per_task: "budget",
};

const codes: Record<string, FieldName> = {
  STATUS$GIT_PROVIDER_AUTHENTICATION_ERROR: "repository",
  STATUS$GIT_BRANCH_NOT_FOUND: "branch",
  CONFIGURATION$MODEL_UNAVAILABLE: "model",
  CONFIGURATION$MODEL_PRICE_UNKNOWN: "budget",
  [skippedFile]: "files",
};

/** faults says which field each complaint is about; the rest is under "". */
export function faults(err: unknown): Partial<Record<FieldName | "", string>> {
  if (!(err instanceof ApiError)) return { "": err instanceof Error ? err.message : String(err) };
  const byField = err.fields.map((f) => [names[String(f.loc[1])] ?? "", f.msg] as const);
  return byField.length > 0 ? Object.fromEntries(byField) : { [codes[err.code] ?? ""]: err.message };
}
