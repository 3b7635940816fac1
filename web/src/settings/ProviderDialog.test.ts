// @vitest-environment jsdom
import { expect, it } from "vitest";

import { render, the } from "../testing/page";
import ProviderDialog from "./ProviderDialog.svelte";

it("needs no base URL for a new provider, because known names have one", () => {
  render(ProviderDialog, { provider: undefined, onsaved: () => {}, onclose: () => {} });
  expect((the("textbox", "Base URL") as HTMLInputElement).required).toBe(false);
});
