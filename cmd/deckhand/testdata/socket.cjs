// Joins a conversation with the official Socket.IO client, says something, and
// leaves when the agent has answered and the transport is the best it may have.
const { io } = require("socket.io-client");

const job = JSON.parse(process.argv[2]);
const socket = io(job.origin, { path: job.path, query: job.query, transports: job.transports, reconnection: false });
let said = false, heard = false, rests = false, last = -1, events = 0;

function fail(why) {
  console.error(why);
  process.exit(1);
}

function leave() {
  const transport = socket.io.engine.transport.name;
  if (!heard || !rests || transport !== job.transports.at(-1)) return;
  console.log(JSON.stringify({ transport, events }));
  socket.disconnect();
}

socket.on("connect_error", (e) => fail("refused: " + e.message + " " + JSON.stringify(e.data)));
socket.on("disconnect", (why) => why === "io client disconnect" || fail("disconnected: " + why));
socket.io.engine.on("upgrade", leave);
socket.on("connect", () => {
  said = true;
  socket.emit("oh_user_action", { action: "message", args: { content: job.text, image_urls: [], file_urls: [], timestamp: new Date().toISOString() } });
});
socket.on("oh_event", (e) => {
  if (!said) fail("an event before the connection");
  if (e.error) fail(JSON.stringify(e));
  if (e.id === undefined) return;
  events++;
  if (e.observation !== "agent_state_changed" && e.id <= last) fail("out of order: " + e.id + " after " + last);
  last = Math.max(last, e.id);
  if (e.action === "message" && e.source === "agent" && e.message.includes(job.text)) heard = true;
  rests = heard && (rests || (e.observation === "agent_state_changed" && e.extras.agent_state === "awaiting_user_input"));
  leave();
});
