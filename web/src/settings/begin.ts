import { api, type Schemas } from "../lib/api";
import { session } from "../lib/session.svelte";
import { firstSettings } from "./changes";

/** begin stores the first settings of a new user, before something else creates them. */
export async function begin(): Promise<void> {
  if (session.settings) return;
  await api.POST("/api/settings", { body: firstSettings(null) as Schemas["SettingsInput"] });
  await session.refresh();
}
