import { expect, it, vi } from "vitest";

vi.stubGlobal("document", { baseURI: "http://deckhand.test/" });
const { named } = await import("./git");

const connected = { gitea: "git.example.org:3000", forgejo: "https://forge.example.org/", github: "" };

it.each([
  ["ada/engine", "ada/engine", null],
  ["group/sub/engine", "group/sub/engine", null],
  ["https://github.com/ada/engine", "ada/engine", "github"],
  ["https://www.github.com/ada/engine.git", "ada/engine", "github"],
  ["https://someone@gitlab.com/group/sub/engine.git", "group/sub/engine", "gitlab"],
  ["git@bitbucket.org:ada/engine.git", "ada/engine", "bitbucket"],
  ["https://codeberg.org/ada/engine", "ada/engine", "forgejo"],
  ["http://git.example.org:3000/ada/engine.git", "ada/engine", "gitea"],
  ["ssh://git@forge.example.org/ada/engine/", "ada/engine", "forgejo"],
])("%j names %j of %j", (text, full_name, git_provider) =>
  expect(named(text, connected)).toEqual({ repository: { full_name, git_provider, main_branch: null } }),
);

it.each([
  ["http://127.0.0.1:9/ada/engine.git", "127.0.0.1:9"],
  ["https://git.example.org/ada/engine", "git.example.org"],
  ["git@elsewhere.example:ada/engine.git", "elsewhere.example"],
])("%j is at %j, which is not connected", (text, stranger) => expect(named(text, connected)).toEqual({ stranger }));

it.each(["engine", "ada/", "ada/en gine", "", "https://github.com/", "file:///srv/engine.git"])("%j names nothing", (text) =>
  expect(named(text, connected)).toBeUndefined(),
);
