// A new user sets up providers, chooses a model in a few words, and approves what is risky.
import { join } from "node:path";

import { begin, call, clean, enter, expect, job, play, settle } from "./stage.mjs";

const origin = new URL(job.model).origin;
const shown = (page, text) => page.locator("#main").getByText(text).first().waitFor();
const state = (page, name) => page.locator("main header").getByText(name, { exact: true }).first().waitFor();
const dialog = (page) => page.getByRole("dialog");

/** picture leaves a picture, if they are wanted. */
const picture = (page, name) => job.pictures && page.screenshot({ path: join(job.pictures, `models-${name}.png`), fullPage: true });

/** pick types a few words into a field for a model and takes the first that is found. */
async function pick(page, field, words, model) {
  const input = page.getByRole("combobox", { name: field });
  await input.fill(words);
  await page.getByRole("option", { name: model }).first().waitFor();
  await input.press("Enter");
}

await play({
  async "a provider is set up and its model found in a few words"() {
    const there = await enter("nora");
    const { page } = there;
    await page.goto("settings/model");
    await page.getByRole("button", { name: "Set up Anthropic", exact: true }).click();
    await dialog(page).getByLabel("API key", { exact: true }).fill("sk-ant-wrong-canary");
    await dialog(page).getByLabel("Base URL").fill(origin);
    await dialog(page).getByRole("combobox", { name: "Model to test with" }).fill("anthropic/claude-sonnet-4-5-20250929");
    await page.keyboard.press("Tab");
    await dialog(page).getByRole("button", { name: "Test" }).click();
    await dialog(page).getByText("cannot be used").waitFor();
    await picture(page, "refused");
    await dialog(page).getByRole("button", { name: "Save" }).click();
    await page.getByText("Test failed just now").waitFor(); // instead of "Set up"
    await page.getByRole("button", { name: "Edit Anthropic", exact: true }).click();
    await dialog(page).getByRole("button", { name: "Replace" }).click();
    await dialog(page).getByRole("combobox", { name: "Model to test with" }).fill("anthropic/claude-sonnet-4-5-20250929");
    await page.keyboard.press("Tab");
    await dialog(page).getByLabel("API key", { exact: true }).fill("sk-ant-right-canary");
    await dialog(page).getByRole("button", { name: "Test" }).click();
    await dialog(page).getByText("claude-sonnet-4-5-20250929 works.").waitFor();
    await picture(page, "works");
    await dialog(page).getByRole("button", { name: "Save" }).click();
    await page.getByText(/^Worked just now · /).waitFor();
    await page.getByRole("button", { name: "Edit Anthropic", exact: true }).waitFor();
    await pick(page, "Main model", "sonet 4.5", /anthropic\/claude-sonnet-4-5-20250929/);
    await page.getByRole("button", { name: /^Save/ }).click();
    await page.getByText("Settings saved").first().waitFor();
    await picture(page, "settings");
    await page.goto(`conversations/${await begin("nora", "Hello")}`);
    await shown(page, "Ahoy from Anthropic");
    await page.goto("settings/model");
    await page.getByRole("button", { name: "Edit Anthropic", exact: true }).click();
    await dialog(page).getByText("Saved", { exact: true }).waitFor();
    expect(!(await page.content()).includes("canary"), "a key is in the page");
    const stored = await call("nora", "GET", "/api/settings");
    expect(stored.approval_mode === "risky", `a new user's agent asks ${stored.approval_mode}`);
    expect(!JSON.stringify([stored, await call("nora", "GET", "/api/model-providers")]).includes("canary"), "a key is returned");
    // Another user has none of it.
    expect(!JSON.stringify(await call("otto", "GET", "/api/model-providers")).includes(origin), "another user sees it");
    await clean(there);
  },

  async "a local server's models are found"() {
    await settle("otto");
    const there = await enter("otto");
    const { page } = there;
    await page.setViewportSize({ width: 390, height: 800 });
    await page.goto("settings/model");
    await page.getByRole("button", { name: "Set up Ollama", exact: true }).click();
    await dialog(page).getByLabel("Base URL").fill(origin);
    await dialog(page).getByRole("button", { name: "Save" }).click();
    await page
      .getByRole("button", { name: /^Use ollama\// })
      .first()
      .waitFor();
    await picture(page, "ollama-390");
    await page
      .getByRole("button", { name: /^Favourite: ollama\// })
      .first()
      .click();
    await page
      .getByRole("button", { name: /^Favourite: ollama\//, pressed: true })
      .first()
      .waitFor();
    expect((await call("otto", "GET", "/api/model-providers")).favourite_models[0].startsWith("ollama/"), "the favourite is lost");
    await page.getByRole("button", { name: "Edit Ollama", exact: true }).click();
    await dialog(page).getByLabel("Base URL").fill("http://127.0.0.1:1");
    await dialog(page).getByRole("button", { name: "Save" }).click();
    await page.getByText("No server responded at http://127.0.0.1:1").waitFor();
    await clean(there);
  },

  async "a server is tested before it is saved, and a cloud has its own fields"() {
    await settle("otto");
    const there = await enter("otto", { expected: [/422/] }); // invalid credentials
    const { page } = there;
    await page.goto("settings/model");
    await page.getByRole("button", { name: "Set up vLLM", exact: true }).click();
    await dialog(page).getByLabel("Base URL").fill(`${origin}/v1`);
    await dialog(page).getByRole("button", { name: "Test" }).click();
    await dialog(page)
      .getByText(/vllm\/\S+ (works|cannot be used)/)
      .waitFor();
    await picture(page, "vllm");
    await dialog(page).getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Set up Amazon Bedrock", exact: true }).click();
    await dialog(page).getByLabel("AWS access keys").check();
    await dialog(page).getByLabel("Access key ID").fill("AKIAIOSFODNN7EXAMPLE");
    await dialog(page).getByLabel("Secret access key").fill("secret-canary-0123456789");
    await dialog(page).getByLabel("Region").fill("eu-central-1");
    const base = await dialog(page).getByLabel("Base URL").inputValue();
    expect(base === "https://bedrock-runtime.eu-central-1.amazonaws.com", `the base URL is ${base}`);
    for (const scheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme: scheme });
      await picture(page, `bedrock-${scheme}`);
    }
    await page.setViewportSize({ width: 390, height: 800 });
    await picture(page, "bedrock-390");
    await dialog(page).getByRole("button", { name: "Save" }).click();
    await page.getByRole("button", { name: "Edit Amazon Bedrock", exact: true }).waitFor();
    const { providers } = await call("otto", "GET", "/api/model-providers");
    const stored = providers.find((p) => p.id === "bedrock");
    expect(stored.usable && stored.api_key_set && stored.base_url === base, JSON.stringify(stored));
    expect(!(await page.content()).includes("canary") && !JSON.stringify(providers).includes("canary"), "a key is shown");
    await page.getByRole("button", { name: "Set up Google Vertex AI", exact: true }).click();
    await picture(page, "vertex-390");
    await dialog(page).getByLabel("Service account key (JSON)", { exact: true }).fill('{"type":"authorized_user"}');
    await dialog(page).getByRole("button", { name: "Save" }).click();
    await dialog(page).getByText("not the key file of a service account").waitFor();
    await dialog(page).getByRole("button", { name: "Cancel" }).click();
    await clean(there);
  },

  async "another model continues when the first fails"() {
    await settle("pola", { llm_model: "openai/broken", llm_api_key: "sk-broken", llm_base_url: job.model });
    await call("pola", "PUT", "/api/model-providers/anthropic", { api_key: "sk-ant-right-canary", base_url: origin });
    const there = await enter("pola");
    const { page } = there;
    await page.goto("settings/model");
    await pick(page, "Fallback model", "sonnet 4.5 20250929", /anthropic\/claude-sonnet-4-5-20250929/);
    await page.getByText("Settings saved").first().waitFor();
    await page.goto(`conversations/${await begin("pola", "Hello")}`);
    await shown(page, "Ahoy from Anthropic");
    await shown(page, "anthropic/claude-sonnet-4-5-20250929 continues this turn");
    await picture(page, "fallback");
    await clean(there);
  },

  async "a call of high risk takes more than a key"() {
    const there = await enter("quin");
    const { page } = there;
    await settle("quin", { approval_mode: "never" });
    await page.goto("settings/agent");
    await page.getByRole("radio", { name: /^Ask when risky/ }).check();
    await picture(page, "approvals");
    await page.getByRole("button", { name: /^Save/ }).click();
    await page.getByText("Settings saved").first().waitFor();
    const id = await begin("quin", "$ rm -rf ~ && printf 'go%s' ne");
    await page.goto(`conversations/${id}`);
    await state(page, "Needs approval");
    const card = page.getByRole("alert", { name: "Approval" });
    await card.getByText("High risk").click(); // letters are no text for the agent
    for (let i = 0; i < 3; i++) await page.keyboard.press("y");
    await page.getByRole("button", { name: "Approve high-risk call" }).waitFor();
    await picture(page, "high-risk");
    expect((await call("quin", "GET", `/api/conversations/${id}/approvals`)).pending.length === 1, "a key approved it");
    await page.getByRole("button", { name: "Approve high-risk call" }).click();
    await state(page, "Done");
    await clean(there);
  },
});
