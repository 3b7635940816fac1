// Calls the server as the legacy front end does: no key but the one that it finds
// in the conversation. What it has seen it tells to report, which the test adds.
const tell = (what, more = {}) => window.report(JSON.stringify({ what, ...more }));

async function get(path, options = {}) {
  const res = await fetch(path, options);
  if (!res.ok) throw new Error((options.method || "GET") + " " + path + ": " + res.status + " " + (await res.text()));
  return res.json();
}

const post = (path, body) => get(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

async function ready(id) {
  for (;;) {
    const c = await get("/api/conversations/" + id);
    if (c.status === "RUNNING" && c.runtime_status && c.runtime_status !== "STATUS$STOPPED") return c;
    if (c.status === "STOPPED") await post(`/api/conversations/${id}/start`, { providers_set: [] });
    await new Promise((done) => setTimeout(done, 100));
  }
}

function follow(conversation, options, onEvent) {
  const socket = io(location.host, {
    path: "/socket.io",
    query: { latest_event_id: -1, conversation_id: conversation.conversation_id, providers_set: [], session_api_key: conversation.session_api_key },
    ...options,
  });
  socket.on("connect_error", (e) => tell("refused", { why: e.message }));
  socket.on("disconnect", (why) => tell("disconnected", { why }));
  socket.on("oh_event", (e) => {
    if (e.id !== undefined) document.getElementById("events").append(Object.assign(document.createElement("li"), { textContent: e.message }));
    onEvent(e, socket);
  });
}

const answers = (e, text) => e.action === "message" && e.source === "agent" && e.message.includes(text);
const say = (content) => ({ action: "message", args: { content, image_urls: [], file_urls: [], timestamp: new Date().toISOString() } });

async function begin() {
  const words = await get("/locales/en/translation.json");
  await get("/api/options/config");
  await get("/api/settings");
  await get("/api/conversations?limit=20");
  const made = await post("/api/conversations", { initial_user_msg: words.GREETING });
  history.pushState(null, "", "/conversations/" + made.conversation_id);
  const conversation = await ready(made.conversation_id);
  const header = { headers: { "X-Session-API-Key": conversation.session_api_key } };
  follow(conversation, { transports: ["websocket"] }, async (e, socket) => {
    if (answers(e, words.GREETING)) socket.emit("oh_user_action", say("second"));
    if (!answers(e, "second")) return;
    await get(`${conversation.url}/web-hosts`, header);
    await get(`${conversation.url}/microagents`, header);
    tell("talked", { id: made.conversation_id, key: conversation.session_api_key, shown: document.querySelectorAll("li").length, booted: window.booted, colour: getComputedStyle(document.querySelector("h1")).color });
  });
}

// Opened again, it follows with the cookie alone, over both transports.
async function again(id) {
  const conversation = await ready(id);
  let seen = false, told = false;
  follow({ ...conversation, session_api_key: null }, { transports: ["polling", "websocket"] }, (e, socket) => {
    const look = () => {
      if (!seen || told || socket.io.engine.transport.name !== "websocket") return;
      told = true;
      tell("followed", { shown: document.querySelectorAll("li").length });
    };
    seen = seen || answers(e, "second");
    socket.io.engine.once("upgrade", look);
    look();
  });
}

const id = location.pathname.match(/^\/conversations\/(\w+)$/);
(id ? again(id[1]) : begin()).catch((e) => tell("failed", { why: String(e) }));
