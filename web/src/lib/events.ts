// Events as they are logged (docs/events.md). Their types come from the OpenAPI document;
// what tools are given and what they say beside their text is any JSON, read by name.
import type { Schemas } from "./api";

export type Event = Schemas["Event"];

/** An event of one kind. */
export type EventOf<K extends Event["kind"]> = Extract<Event, { kind: K }>;

/** How people see a call of a tool, as the tool declares it. Tools are not known here by name. */
export type Display = Schemas["Display"];

/** The display of commands that are no call of a tool: a person typed them, or a script ran. */
export const commandDisplay: Display = { content: "command", title: "", main: "command" };

/** means is what an event says: itself, or what an imported one stands for. */
export const means = (e: Event): Event[] => (e.kind === "imported" ? e.payload.as : [e]);

/** JSON by name, of which nothing is trusted to be there. */
export type Fields = Record<string, unknown>;

export const fields = (v: unknown): Fields => (typeof v === "object" && v !== null && !Array.isArray(v) ? (v as Fields) : {});

/** text is a field that should be a string. */
export function text(from: Fields | undefined, name: string): string {
  const v = from?.[name];
  return typeof v === "string" ? v : "";
}

export function texts(from: Fields | undefined, name: string): string[] {
  const v = from?.[name];
  return Array.isArray(v) ? v.filter((x) => typeof x === "string") : [];
}

/** stateOf is the state of the agent that an event tells, and why, if it tells one. */
export function stateOf(e: Event): [state: string, reason?: string] | undefined {
  switch (e.kind) {
    case "created":
    case "start_requested":
      return ["loading"];
    case "turn_began":
    case "resumed":
      return ["running"];
    case "approval_asked":
      return e.payload.told ? undefined : ["awaiting_user_confirmation", e.payload.reason];
    case "approval_given":
      // After the deadline the default approves it, not the person.
      return [!e.payload.approved ? "user_rejected" : e.payload.late ? "running" : "user_confirmed", e.payload.reason];
    case "state_changed":
      return [e.payload.state, e.payload.reason];
    case "turn_ended":
      return [e.payload.state, e.payload.reason || e.payload.error_id];
    case "paused":
      return ["paused"];
    case "stopped":
      return ["stopped", e.payload.reason];
    case "failed":
      return ["error", e.payload.reason || e.payload.id];
  }
}

/** What details have if a call failed and its card shows how; for all other contents it is the result of an MCP server. */
const telling: Partial<Record<Display["content"], string>> = { command: "exit_code", page: "url" };

/** The exit code of a command that was interrupted, as shells have it. */
const interrupted = 130;

/** How a call ended, as far as it is shown. */
export interface Result {
  id: number;
  at: number;
  outcome: EventOf<"tool_returned">["payload"]["outcome"];
  /** Whether there is nothing to show but why: the call failed, was rejected or never came to an end. */
  failed: boolean;
  output: string;
  details: Fields;
  /** What was really run, should the person have changed it. */
  ran: string;
  /** The exit code of a command. */
  exit: number;
}

/** resultOf is the result that an event tells. */
export function resultOf(e: EventOf<"tool_returned" | "command_ended" | "set_up">): Result {
  const at = Date.parse(e.time);
  if (e.kind === "set_up") {
    const { output = "", script, exit } = e.payload;
    return { id: e.id, at, outcome: "ok", failed: false, output, details: {}, ran: `. ./${script}`, exit };
  }
  const { outcome, output = "" } = e.payload;
  const details = slim(fields(e.payload.details));
  const code = typeof details.exit_code === "number" ? details.exit_code : e.kind === "command_ended" ? -1 : 0;
  const result = { id: e.id, at, outcome, output, details, exit: outcome === "cancelled" ? interrupted : code };
  if (e.kind === "command_ended") return { ...result, failed: false, ran: e.payload.command };
  const args = fields(e.payload.args);
  return { ...result, failed: failed(e.payload, details), ran: text(args, e.payload.display.main) };
}

function failed({ display: { content }, outcome, partial }: EventOf<"tool_returned">["payload"], details: Fields): boolean {
  if (outcome === "failed") return (details[telling[content] ?? "result"] ?? "") === "";
  if (outcome === "cancelled") return !(partial && content === "command");
  return outcome !== "ok";
}

/** slim drops what is never shown, so that thousands of events fit: page trees, and whole files where the difference is there too. */
function slim(details: Fields): Fields {
  for (const name of ["dom_object", "axtree_object", "extra_element_properties", "set_of_marks"]) delete details[name];
  if (text(details, "diff")) {
    delete details.old_content;
    delete details.new_content;
  }
  return details;
}
