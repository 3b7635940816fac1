// Events as the server tells them (docs/events.md), reduced to what the page shows.

export interface Task {
  id: string;
  title: string;
  status: string;
  notes?: string;
}

export interface Metrics {
  accumulated_cost?: number;
  accumulated_token_usage?: { model?: string; prompt_tokens?: number; completion_tokens?: number; cache_read_tokens?: number; context_window?: number; per_turn_token?: number };
}

/** What stands in args and extras: by name, and never trusted to be there. */
export type Fields = Record<string, unknown>;

export interface Event {
  id: number;
  timestamp: string;
  source: "user" | "agent" | "environment";
  message?: string;
  action?: string;
  args?: Fields;
  cause?: number;
  observation?: string;
  content?: string;
  extras?: Fields;
  success?: boolean;
  llm_metrics?: Metrics;
  /** In place of all that: a notice beside the history. */
  status?: Status;
  tool_call_metadata?: { tool_call_id?: string; function_name?: string } | null;
}

export interface Status {
  type?: string;
  id?: string;
  message?: string;
  conversation_title?: string;
}

/** text is a field that should be a string. */
export function text(fields: Fields | undefined, name: string): string {
  const v = fields?.[name];
  return typeof v === "string" ? v : "";
}

export function number(fields: Fields | undefined, name: string): number | undefined {
  const v = fields?.[name];
  return typeof v === "number" ? v : undefined;
}

export function texts(fields: Fields | undefined, name: string): string[] {
  const v = fields?.[name];
  return Array.isArray(v) ? v.filter((x) => typeof x === "string") : [];
}

export function tasks(fields: Fields | undefined): Task[] | undefined {
  const v = fields?.task_list;
  return Array.isArray(v) ? (v as Task[]) : undefined;
}

/**
 * slim drops what the page never shows, so that thousands of events fit: the model's raw
 * answer, page trees, and whole files where the difference is there too.
 */
export function slim(e: Event): Event {
  if (e.tool_call_metadata) {
    const { tool_call_id, function_name } = e.tool_call_metadata;
    e.tool_call_metadata = { tool_call_id, function_name };
  }
  if (e.extras && e.observation === "browse") {
    for (const name of ["dom_object", "axtree_object", "extra_element_properties", "set_of_marks"]) delete e.extras[name];
  }
  if (e.extras && e.observation === "edit" && text(e.extras, "diff")) {
    delete e.extras.old_content;
    delete e.extras.new_content;
  }
  delete e.llm_metrics;
  delete e.message;
  return e;
}
