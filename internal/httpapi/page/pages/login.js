// A login link carries its ticket behind the #, which browsers never send to a server or a proxy log.
const root = new URL("../..", document.currentScript.src);
const state = document.getElementById("state");

// This page may stand in for another one, at that one's address.
function goOn() {
  const here = new URL(location.pathname + location.search, location);
  location.replace(here.pathname === new URL("login", root).pathname || here.origin !== root.origin ? root : here);
}

async function login(proof) {
  const answer = await fetch(new URL("api/login", root), { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(proof) });
  if (answer.ok) {
    goOn();
    return;
  }
  state.className = "bad";
  state.textContent = proof.ticket
    ? "This login link has expired or was already used. Enter a key, or restart the server to get a new link."
    : answer.status === 429 ? "Too many attempts. Wait a moment and try again." : "Invalid, revoked or expired key, or the account is disabled.";
}

document.getElementById("form").addEventListener("submit", (event) => {
  event.preventDefault();
  login({ key: document.getElementById("key").value.trim() });
});

const ticket = location.hash.slice(1);
if (ticket) {
  history.replaceState(null, "", location.pathname);
  state.textContent = "Logging in…";
  login({ ticket });
} else if ("astray" in document.body.dataset) {
  fetch(new URL("api/me", root)).then((answer) => answer.ok && goOn());
}

// Where people may sign on elsewhere, and what became of that.
const reasons = {
  unavailable: "Cannot reach the identity provider. Try again later, or use a key.",
  expired: "This sign-in expired or was started in another browser. Start again.",
  denied: "The identity provider denied access.",
  unverified: "Your e-mail address is not verified. Verify it with the identity provider, then try again.",
  foreign: "Your e-mail domain is not allowed on this server.",
  disabled: "Your account is disabled. Ask an administrator to enable it.",
  too_many: "Too many attempts. Wait a moment and try again.",
};
const query = new URLSearchParams(location.search);
const failed = query.get("sign_on");
if (failed) {
  // From here on it stands in for the page that was meant, if that is one of this server's.
  const meant = new URL("." + (query.get("next") ?? ""), root);
  const good = meant.origin === root.origin && query.get("next")?.startsWith("/") && !meant.pathname.includes("//");
  history.replaceState(null, "", good ? meant : location.pathname);
  state.className = "bad";
  state.textContent = reasons[failed] ?? "Sign-in failed. See the server log for details.";
}
fetch(new URL("api/login/options", root)).then((answer) => answer.json()).then(({ oidc }) => {
  if (!oidc) return;
  const there = new URL(oidc.start_path.slice(1), root);
  if (location.pathname !== new URL("login", root).pathname) there.searchParams.set("next", location.pathname.slice(root.pathname.length - 1) + location.search);
  document.getElementById("sign-on").href = there;
  document.getElementById("sign-on").textContent = `Continue with ${oidc.name}`;
  document.getElementById("elsewhere").hidden = false;
});

document.getElementById("logout").addEventListener("click", async () => {
  const answer = await fetch(new URL("api/logout", root), { method: "POST" });
  state.className = "soft";
  state.textContent = answer.ok ? "This browser is logged out." : "This browser was not logged in.";
});
