// root is home.js's, which comes before this script.
const base = new URL("api/conversations/" + encodeURIComponent(document.body.dataset.id), root);

for (const ask of document.querySelectorAll(".ask")) {
  ask.addEventListener("click", async (e) => {
    const decision = e.target.dataset.decision;
    if (!decision) return;
    const body = { call_id: ask.dataset.call, decision };
    const why = ask.querySelector("input").value.trim();
    if (decision === "reject" && why) body.reason = why;
    const res = await fetch(base + "/approvals", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    if (res.ok) return location.reload();
    const said = await res.json().catch(() => ({}));
    ask.querySelector("[role=alert]").textContent = said.message || said.error || "The answer was not taken (" + res.status + ").";
  });
}

// The page follows the agent's state; somebody who writes is not interrupted.
const news = new EventSource(base + "/events/stream?after=" + document.body.dataset.last);
news.onmessage = (e) => {
  if (!e.data.includes('"observation":"agent_state_changed"')) return;
  if ([...document.querySelectorAll(".ask input")].some((i) => i.value)) return;
  news.close();
  location.reload();
};
