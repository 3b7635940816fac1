// A script as people wrote them for the legacy server: plain HTTP calls and the
// official Socket.IO client, which is imported from the folder in MODULES. It takes
// one conversation through everything that a person does with one, and fails on the
// first event that is lost, doubled or out of order.
//
//   node conversation.mjs BASE KEY TRANSPORTS
//
// BASE may have a path. TRANSPORTS is a comma list as the client takes it.
import { createRequire } from "node:module";

const [base, key, transports] = process.argv.slice(2);
const { io } = createRequire(process.env.MODULES + "/")("socket.io-client");
const { origin, pathname } = new URL(base);
const prefix = pathname.replace(/\/$/, "");

async function call(method, path, body) {
  const answer = await fetch(origin + prefix + path, {
    method,
    headers: { "X-Session-API-Key": key, "Content-Type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return JSON.parse(text);
}

// All that came, over all connections, and who waits for something.
const seen = [];
let latest = -1;
let waiting = [];

function arrived(event) {
  seen.push(event);
  if (Number.isInteger(event.id)) {
    const state = event.observation === "agent_state_changed";
    // The newest state closes a replay, so it alone may come after events that are newer.
    if (!state && event.id <= latest) throw new Error(`event ${event.id} after ${latest}`);
    latest = Math.max(latest, event.id);
  }
  for (const w of waiting.filter((w) => w.test(event))) {
    waiting.splice(waiting.indexOf(w), 1);
    w.done(event);
  }
}

const until = (test) => new Promise((done) => waiting.push({ test, done }));
const untilState = (state) => until((e) => e.extras?.agent_state === state);
const untilSeen = (kind) => until((e) => e.observation === kind);

let socket;
function connect(id) {
  socket = io(origin, {
    path: prefix + "/socket.io/",
    transports: transports.split(","),
    query: { conversation_id: id, latest_event_id: latest, providers_set: "", session_api_key: key },
    forceNew: true,
    reconnection: false,
  });
  socket.on("oh_event", arrived);
  return new Promise((done, fail) => {
    socket.on("connect", done);
    socket.on("connect_error", fail);
  });
}

const say = (content) => socket.emit("oh_user_action", { action: "message", args: { content, image_urls: [], file_urls: [], timestamp: new Date().toISOString() } });
const want = (agent_state) => socket.emit("oh_user_action", { action: "change_agent_state", args: { agent_state } });

// The same with the older name of the event.
const wantAsBefore = (agent_state) => socket.emit("oh_action", { action: "change_agent_state", args: { agent_state } });

async function main() {
  const { conversation_id: id, status } = await call("POST", "/api/conversations", { initial_user_msg: "Begin." });
  if (status !== "ok") throw new Error("not created");

  // Followed from the start; the first call waits, is confirmed and runs.
  let asked = untilState("awaiting_user_confirmation");
  await connect(id);
  await asked;
  let ran = untilSeen("run");
  asked = untilState("awaiting_user_confirmation");
  want("user_confirmed");
  if ((await ran).content.trim() !== "one") throw new Error("it did not run");

  // The second waits and is rejected.
  await asked;
  const rejected = untilSeen("user_rejected");
  let idle = untilState("awaiting_user_input");
  wantAsBefore("user_rejected");
  await rejected;
  await idle;

  // Cut in the middle of a turn, while the call waits; somebody else does things meanwhile.
  asked = untilState("awaiting_user_confirmation");
  say("Again, please.");
  await asked;
  socket.disconnect();
  await call("POST", `/api/conversations/${id}/events`, { action: "change_agent_state", args: { agent_state: "user_confirmed" } });
  ran = untilSeen("run");
  await connect(id);
  if ((await ran).content.trim() !== "one") throw new Error("it did not run the second time");
  await untilWaiting();

  // Stopped by its button, and taken up again by a message.
  let stopped = untilState("stopped");
  want("stopped");
  await stopped;
  asked = untilState("awaiting_user_confirmation");
  say("continue");
  await asked;

  // Paused and resumed.
  const paused = untilState("paused");
  want("paused");
  await paused;
  const resumed = until((e) => ["running", "awaiting_user_confirmation"].includes(e.extras?.agent_state));
  want("running");
  await resumed;

  // Stopped over HTTP: the server ends the connection. Started again by the next one.
  const gone = new Promise((done) => socket.on("disconnect", done));
  const { conversation_status } = await call("POST", `/api/conversations/${id}/stop`);
  if (conversation_status !== "STOPPED") throw new Error(`stop answers ${conversation_status}`);
  if ((await gone) !== "io server disconnect") throw new Error("the connection was not ended by the server");
  await call("POST", `/api/conversations/${id}/start`, {});
  await connect(id);
  asked = untilState("awaiting_user_confirmation");
  say("And once more.");
  await asked;
  ran = untilSeen("run");
  want("user_confirmed");
  await ran;
  await untilWaiting();
  idle = untilState("awaiting_user_input");
  want("user_rejected");
  await idle;

  await compare(id);

  // Deleted: the connection ends with it.
  const end = new Promise((done) => socket.on("disconnect", done));
  if ((await call("DELETE", `/api/conversations/${id}`)) !== true) throw new Error("it was not deleted");
  await end;
}

// untilWaiting is about the newest state, which may have come already.
function untilWaiting() {
  const state = "awaiting_user_confirmation";
  const last = seen.filter((e) => e.observation === "agent_state_changed").reduce((a, b) => (b.id > a.id ? b : a));
  return last.extras.agent_state === state ? undefined : untilState(state);
}

// compare holds what came against what is stored: every event once and in order. The
// states between two connections are not told one by one, and neither are recalls.
async function compare(id) {
  const stored = [];
  for (let page = { has_more: true }; page.has_more; ) {
    page = await call("GET", `/api/conversations/${id}/events?limit=100&start_id=${stored.length ? stored.at(-1).id + 1 : 0}`);
    stored.push(...page.events);
  }
  const told = (e) => Number.isInteger(e.id) && e.observation !== "agent_state_changed" && e.action !== "recall";
  const a = seen.filter(told).map((e) => e.id);
  const b = stored.filter(told).map((e) => e.id);
  if (JSON.stringify(a) !== JSON.stringify(b)) throw new Error(`came ${a}\nstored ${b}`);
  const states = seen.filter((e) => e.observation === "agent_state_changed").map((e) => e.id);
  if (new Set(states).size !== states.length) throw new Error(`a state came twice: ${states}`);
  if (!seen.some((e) => e.status_update)) throw new Error("no status came");
  if (!seen.some((e) => e.conversation_title)) throw new Error("no title came");
  console.log(`${a.length} events and ${states.length} states over ${socket.io.engine.transport.name}`);
}

main().then(
  () => process.exit(0),
  (err) => {
    console.error(err);
    console.error(seen.map((e) => `${e.id} ${e.action ?? e.observation ?? e.conversation_title ?? e.message} ${e.extras?.agent_state ?? ""}`).join("\n"));
    process.exit(1);
  },
);
