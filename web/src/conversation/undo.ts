// Restores to before a message, and undoes and redoes restores.
import { ApiError } from "../lib/api";
import { t } from "../lib/i18n.svelte";
import { toasts } from "../lib/toasts.svelte";
import type { Item } from "./item.svelte";
import type { OpenConversation } from "./open-conversation.svelte";
import * as routes from "./routes";

/** The maximum number of pages to read to find the last turn. */
const mostPages = 50;

/** The code of a refusal because the user changed some of the files too. */
const conflict = "CONVERSATION$RESTORE_CONFLICT";

/** restoreTo restores to before the first of the messages. With the conversation, their text goes to the message box if that is empty. */
export async function restoreTo(
  conversation: OpenConversation,
  messages: Item[],
  what: routes.Restoring,
  ownChanges: routes.Own = "refuse",
): Promise<void> {
  const [first] = messages;
  if (!first) return;
  await conversation.attempt(async () => {
    const done = await asking(conversation, (own) => restored(conversation, first.id - 1, what, own), ownChanges);
    if (!done) return;
    if (!what.conversation) toasts.say(t("conversation.restored-files"), "good"); // otherwise the feed shows a notice
    if (done.kept?.length) toasts.say(t("conversation.restored-kept", { names: done.kept.join(", ") }), "bad");
    if (what.conversation && conversation.draft.trim() === "") {
      conversation.putBack = messages.map((m) => m.text).join("\n\n");
      conversation.draft = conversation.putBack;
    }
  });
}

/** restored restores. The checkpoint of the last turn may not be known yet, so only the refusal tells that there are no files. */
async function restored(conversation: OpenConversation, event: number, what: routes.Restoring, own: routes.Own) {
  try {
    return await routes.restore(conversation.id, event, what, own);
  } catch (err) {
    const refused = err instanceof ApiError && err.status === 409 && err.code !== conflict;
    if (!refused || !what.files || !what.conversation || (await hasCheckpoints(conversation))) throw err;
    return await routes.restore(conversation.id, event, { ...what, files: false }, own);
  }
}

/** takeRestoreBack undoes the last restore, or redoes the last undone one. */
export async function takeRestoreBack(conversation: OpenConversation, redo: boolean): Promise<void> {
  await conversation.attempt(async () => {
    const take = redo ? routes.redoRestore : routes.undoRestore;
    const done = await asking(conversation, (own) => take(conversation.id, own));
    if (!done) return;
    if (done.kept?.length) toasts.say(t("conversation.restored-kept", { names: done.kept.join(", ") }), "bad");
    // Remove the text that the restore put into the message box, because the history has it again.
    if (!redo && conversation.draft === conversation.putBack) conversation.draft = "";
  });
}

/** asking restores, first as own says. If the user changed some of the files too, it asks what to do with
 * them; undefined if the user cancels. */
async function asking<T>(
  conversation: OpenConversation,
  restore: (own: routes.Own) => Promise<T>,
  own: routes.Own = "refuse",
): Promise<T | undefined> {
  try {
    return await restore(own);
  } catch (err) {
    if (!(err instanceof ApiError) || err.code !== conflict) throw err;
    const files = err.body as routes.RestoreConflict;
    const chosen = await new Promise<routes.Own | undefined>((choose) => (conversation.conflict = { files, choose }));
    conversation.conflict = undefined;
    return chosen && (await restore(chosen));
  }
}

/** undoTurn restores files and conversation to before the last turn. own says what to do with files that the user changed too. */
export async function undoTurn(conversation: OpenConversation, own: routes.Own = "refuse"): Promise<void> {
  const messages = () => conversation.log.items.filter((i) => i.kind === "user" && !i.hiddenBy);
  const begins = (i: Item) => !i.joined;
  // A long turn may have started on an older page.
  for (let i = 0; i < mostPages && conversation.more && !messages().some(begins); i++) await conversation.older();
  const said = messages();
  const from = said.findLastIndex(begins);
  if (from < 0) return toasts.say(t("composer.nothing-undo"), "bad");
  await conversation.attempt(async () => {
    await restoreTo(conversation, said.slice(from), { files: true, conversation: true }, own);
  });
}

/** redoTurn takes back the last undo, unless the conversation has continued since. */
export async function redoTurn(conversation: OpenConversation): Promise<void> {
  const { items } = conversation.log;
  const said = Math.max(0, ...items.filter((i) => i.kind === "user").map((i) => i.id));
  let undone = 0; // restores since the last message that are not taken back
  for (const { id, event } of items) if (event?.kind === "restored" && id > said) undone += event.payload.action === "undo" ? -1 : 1;
  if (undone <= 0) return toasts.say(t("composer.nothing-redo"), "bad");
  await takeRestoreBack(conversation, false);
}

/** hasCheckpoints reports whether the server has checkpoints of this conversation. */
async function hasCheckpoints(conversation: OpenConversation): Promise<boolean> {
  if (conversation.log.checkpoints || !conversation.more) return conversation.log.checkpoints;
  try {
    return ((await routes.checkpoints(conversation.id)).checkpoints ?? []).length > 0;
  } catch (err) {
    if (err instanceof ApiError && err.status === 409) return false;
    throw err;
  }
}
