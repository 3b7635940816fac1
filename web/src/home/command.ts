// Commands in the task of a new conversation. Loaded only for a task that begins with a slash.
import * as routes from "../composer/routes";
import { commandIn, nearest } from "../composer/trigger";
import { t } from "../lib/i18n.svelte";
import type { Task } from "./start";

/** The commands of the page that make no sense without a conversation. */
const later = ["compact", "undo", "redo", "search", "pause", "stop"];
const first = ["plan", "attempts", "model", "new"];

/** What to do with a task: start it, try it several times, choose a model, or show a problem. */
export type Reading = { start: Task } | { attempts: Task } | { model: string } | { problem: string };

/** An UnknownCommand is refused, because no command has its name. */
export class UnknownCommand extends Error {
  constructor(
    readonly command: string,
    readonly near: string | undefined,
  ) {
    super(t("composer.unknown", { name: `/${command}` }));
  }
}

/** readTask finds the command in a task. */
export function readTask(task: Task): Reading {
  if (task.text.trim() === "/") return { problem: t("composer.no-name") };
  const command = commandIn(task.text);
  if (!command) return { start: task };
  const { name, args } = command;
  if (later.includes(name)) return { problem: t("composer.later", { name: `/${name}` }) };
  if (name === "model") return { model: args };
  if (!first.includes(name)) return { start: { ...task, command } };
  if (!args) return { problem: t("composer.no-task", { name: `/${name}` }) };
  if (name === "attempts") return { attempts: { ...task, text: args } };
  return { start: { ...task, text: args, ...(name === "plan" ? { plan: true } : {}) } };
}

/** runFirst runs a command in a new conversation. What the text has after the command, such as paths of
 * files, becomes part of the arguments. */
export async function runFirst(id: string, { name }: { name: string }, images: string[], text: string): Promise<void> {
  const names = (await routes.commands(id)).map((c) => c.name);
  if (!names.includes(name)) throw new UnknownCommand(name, nearest(name, [...first, ...later, ...names]));
  await routes.run(id, name, commandIn(text)?.args ?? "", images, []);
}
