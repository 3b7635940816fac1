// The sections of the settings, and which field is in which.
import type { IconName } from "../ui/Icon.svelte";
import type { Name } from "./changes";

export interface Section {
  id: string;
  icon: IconName;
  fields: Name[];
  admin?: boolean;
}

export const sections: Section[] = [
  { id: "model", icon: "bulb", fields: ["llm_model", "llm_api_key", "llm_base_url", "max_budget_per_task"] },
  {
    id: "agent",
    icon: "gear",
    fields: [
      "agent",
      "max_iterations",
      "approval_mode",
      "enable_default_condenser",
      "enable_proactive_conversation_starters",
      "enable_solvability_analysis",
    ],
  },
  {
    id: "sandbox",
    icon: "terminal",
    fields: ["sandbox_base_container_image", "sandbox_runtime_container_image", "remote_runtime_resource_factor", "sandbox_api_key"],
  },
  { id: "tools", icon: "plug", fields: ["mcp_config", "search_api_key"] },
  { id: "commands", icon: "pencil", fields: [] },
  { id: "secrets", icon: "lock", fields: [] },
  { id: "git", icon: "branch", fields: ["git_user_name", "git_user_email"] },
  { id: "notifications", icon: "bell", fields: ["enable_sound_notifications"] },
  { id: "integrations", icon: "refresh", fields: [] },
  { id: "appearance", icon: "globe", fields: ["language"] },
  { id: "keys", icon: "key", fields: [] },
  { id: "account", icon: "user", fields: ["email", "email_verified", "user_consents_to_analytics"] },
  { id: "users", icon: "users", fields: [], admin: true },
  { id: "health", icon: "pulse", fields: [], admin: true },
];

/** sectionOf is where a field is. */
export const sectionOf = (field: string) => sections.find((s) => (s.fields as string[]).includes(field))?.id;
