// What helps against a failure, by its code: the buttons of its card.
import { router } from "../lib/router.svelte";
import type { OpenConversation } from "./open-conversation.svelte";
import * as routes from "./routes";

export interface Fix {
  /** The key of the button's text. */
  label: "key" | "settings" | "model" | "budget" | "git" | "continue" | "retry";
  run(conversation: OpenConversation): void;
}

const go = (path: string) => () => router.go(path);
const again = (c: OpenConversation) => void c.attempt(() => routes.become(c.id, "running"));
const choose = (c: OpenConversation) => (c.choosing = true);

const retry: Fix = { label: "retry", run: again };
const key: Fix = { label: "key", run: go("/settings/model?field=api_key") };
const model: Fix = { label: "model", run: choose };

const fixes: Record<string, Fix[]> = {
  STATUS$ERROR_LLM_AUTHENTICATION: [key],
  STATUS$ERROR_LLM_OUT_OF_CREDITS: [key, model],
  // The provider rejected the request, for example because it does not have the model.
  STATUS$ERROR: [retry, model],
  CONFIGURATION$SETTINGS_NOT_FOUND: [{ label: "settings", run: go("/settings/model") }],
  CONFIGURATION$MODEL_UNAVAILABLE: [model],
  CONFIGURATION$MODEL_PRICE_UNKNOWN: [{ label: "budget", run: choose }],
  STATUS$ERROR_BUDGET: [{ label: "budget", run: choose }],
  STATUS$GIT_PROVIDER_AUTHENTICATION_ERROR: [{ label: "git", run: go("/settings/git") }],
  STATUS$ERROR_MAX_ITERATIONS: [{ label: "continue", run: again }],
  STATUS$ERROR_STUCK: [{ label: "continue", run: again }],
};

/** The month's limit of a user is the administrator's to raise. */
const helpless = new Set(["STATUS$ERROR_USER_BUDGET"]);

/** fixesFor returns the fixes to offer for a failure. A failure without a known fix can be retried. */
export function fixesFor(code: string): Fix[] {
  return helpless.has(code) ? [] : (fixes[code] ?? [retry]);
}
