// A login link carries its ticket behind the #, which browsers never send to a server or a proxy log.
const state = document.getElementById("state");

async function login(proof) {
  const answer = await fetch("/api/login", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(proof) });
  if (answer.ok) {
    location.replace("/");
    return;
  }
  state.className = "bad";
  state.textContent = proof.ticket
    ? "This login link was used before or is too old. Paste a key, or restart the server for a new link."
    : answer.status === 429 ? "Too many attempts. Wait a moment." : "That key is not good.";
}

document.getElementById("form").addEventListener("submit", (event) => {
  event.preventDefault();
  login({ key: document.getElementById("key").value.trim() });
});

const ticket = location.hash.slice(1);
if (ticket) {
  history.replaceState(null, "", "/login");
  state.textContent = "Logging in…";
  login({ ticket });
}
