// An identity provider on loopback: oidc-provider, which is certified. The argument is the
// folder of its modules. It prints its issuer, reads the redirect addresses of its one
// client as a line of JSON, prints "ready", and ends with its standard input.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { Provider } = await import(pathToFileURL(createRequire(process.argv[2] + "/").resolve("oidc-provider")));

// People by the name they log in with. Any password is right.
const people = {
  ada: { preferred_username: "ada", email: "ada@example.org", email_verified: true, groups: ["crew"] },
  grace: { preferred_username: "Grace Hopper", email: "grace@example.org", email_verified: true, groups: ["crew", "captains"] },
  mallory: { preferred_username: "admin", email: "mallory@example.org", email_verified: true, groups: ["Captains"] },
  eve: { preferred_username: "eve", email: "eve@evil.example", email_verified: true },
  una: { preferred_username: "una", email: "una@example.org", email_verified: false },
};

const scopes = ["openid", "profile", "email", "groups"];

// provide makes the provider, which asks for a name and nothing else: whoever logs in agrees to everything.
function provide(issuer, redirects) {
  return new Provider(issuer, {
    clients: [{ client_id: "deckhand", client_secret: "identity-secret-canary", redirect_uris: redirects, grant_types: ["authorization_code"] }],
    pkce: { required: () => true },
    scopes,
    claims: { openid: ["sub"], profile: ["preferred_username"], email: ["email", "email_verified"], groups: ["groups"] },
    findAccount: (_, id) => people[id] && { accountId: id, claims: () => ({ sub: id, ...people[id] }) },
    async loadExistingGrant(ctx) {
      const grant = new ctx.oidc.provider.Grant({ clientId: ctx.oidc.client.clientId, accountId: ctx.oidc.session.accountId });
      grant.addOIDCScope(scopes.join(" "));
      await grant.save();
      return grant;
    },
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    features: { devInteractions: { enabled: false } },
    cookies: { keys: ["loopback"] },
  });
}

// interact is the provider's login page.
async function interact(provider, req, res) {
  const finish = (result) => provider.interactionFinished(req, res, result, { mergeWithLastSubmission: false });
  if (req.url.endsWith("/abort")) return finish({ error: "access_denied" });
  if (req.method === "POST") {
    let body = "";
    for await (const part of req) body += part;
    return finish({ login: { accountId: new URLSearchParams(body).get("login") } });
  }
  res.setHeader("Content-Type", "text/html");
  res.end(`<!doctype html><title>Who are you?</title><link rel="icon" href="data:,"><form method="post" action="${req.url}"><input name="login" required><button>Log in</button></form>`);
}

const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  console.log(issuer);
  const lines = createInterface({ input: process.stdin });
  lines.once("line", (line) => {
    const provider = provide(issuer, JSON.parse(line));
    const others = provider.callback();
    server.on("request", (req, res) => (req.url.startsWith("/interaction/") ? interact(provider, req, res) : others(req, res)));
    console.log("ready");
  });
  lines.once("close", () => process.exit(0));
});
