// An identity provider on loopback: oidc-provider, which is certified. The arguments are
// its modules' folder and, as JSON, the redirect addresses of the client.
// It prints its issuer, and ends with its standard input.
import { createRequire } from "node:module";
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";

const [modules, redirects] = process.argv.slice(2);
const { Provider } = await import(pathToFileURL(createRequire(modules + "/").resolve("oidc-provider")));

// People by the name they log in with. The password does not matter.
const people = {
  ada: { preferred_username: "ada", email: "ada@example.org", email_verified: true, groups: ["crew"] },
  grace: { preferred_username: "Grace Hopper", email: "grace@example.org", email_verified: true, groups: ["crew", "captains"] },
  mallory: { preferred_username: "admin", email: "mallory@example.org", email_verified: true, groups: ["Captains"] },
  eve: { preferred_username: "eve", email: "eve@evil.example", email_verified: true },
  una: { preferred_username: "una", email: "una@example.org", email_verified: false },
};

const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [{ client_id: "deckhand", client_secret: "identity-secret-canary", redirect_uris: JSON.parse(redirects), grant_types: ["authorization_code"] }],
    pkce: { required: () => true },
    claims: { openid: ["sub"], profile: ["preferred_username"], email: ["email", "email_verified"], groups: ["groups"] },
    scopes: ["openid", "profile", "email", "groups"],
    findAccount: (_, id) => people[id] && { accountId: id, claims: () => ({ sub: `id-of-${id}`, ...people[id] }) },
    cookies: { keys: ["loopback"] },
    features: { devInteractions: { enabled: true } },
  });
  provider.on("server_error", (_, err) => console.error(err));
  server.on("request", provider.callback());
  console.log(issuer);
});
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
