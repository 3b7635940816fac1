// Tries the official client against a server:
//   node clients.js FOLDER VERSION URL [light]
// FOLDER holds node_modules. One line of JSON is printed for every case: its name
// and, if it failed, why. The last line is "end". A light round leaves out most of
// what takes long.
const assert = require("node:assert/strict");
const { createRequire } = require("node:module");
const path = require("node:path");

const [folder, version, url, light] = process.argv.slice(2);
const { io } = createRequire(path.join(folder, "index.js"))(`client-${version}`);
const recovers = Number(version.split(".")[1]) >= 6; // older clients know nothing of it

const heavy = (mode, name) => name.includes("megabyte") || (name.includes("thousand") && mode !== "upgrade");
const modes = {
  polling: ["polling"],
  websocket: ["websocket"],
  upgrade: ["polling", "websocket"],
};

// next is the arguments of the next event of that name.
const next = (emitter, name) => new Promise((resolve) => emitter.once(name, (...args) => resolve(args)));
const ask = (socket, ...args) => new Promise((resolve) => socket.emit(...args, (...answer) => resolve(answer)));
const range = (n) => Array.from({ length: n }, (_, i) => i);

// settled waits until the transport changes no more. A client that loses its
// connection amid that notices it late.
async function settled(socket, mode) {
  if (mode === "upgrade" && socket.io.engine.transport.name !== "websocket") {
    await next(socket.io.engine, "upgrade");
  }
}

// visit is what a case gets to open sockets with. They are closed afterwards.
function visit(transports) {
  const open = [];
  return {
    open,
    // A socket on a connection of its own.
    to(namespace, options = {}) {
      const socket = io(url + namespace, { transports, forceNew: true, reconnectionDelay: 5, reconnectionDelayMax: 20, ...options });
      open.push(socket);
      return socket;
    },
    async in(namespace, options) {
      const socket = this.to(namespace, options);
      await Promise.race([
        next(socket, "connect"),
        next(socket, "connect_error").then(([err]) => Promise.reject(err)),
      ]);
      return socket;
    },
  };
}

const cases = {
  async "connects by the transport that was asked for"(v, mode) {
    const socket = v.to("/");
    await next(socket, "connect");
    assert.equal(typeof socket.id, "string");
    await settled(socket, mode);
    assert.equal(socket.io.engine.transport.name, mode === "polling" ? "polling" : "websocket");
    assert.deepEqual(await ask(socket, "echo", "after"), ["after"]);
    const [{ id }] = await ask(socket, "who");
    assert.equal(id, socket.id);
  },

  async "sends query and auth"(v) {
    const query = { conversation_id: "c 1&ü", latest_event_id: -1, providers_set: "github,gitlab" };
    const socket = await v.in("/", { query, auth: { token: "t", deep: [1, { a: null }] } });
    const [who] = await ask(socket, "who");
    assert.deepEqual(who.auth, { token: "t", deep: [1, { a: null }] });
    assert.equal(who.query.conversation_id, "c 1&ü");
    assert.equal(who.query.latest_event_id, "-1");
    assert.equal(who.query.providers_set, "github,gitlab");
  },

  async "has no auth unless it is given"(v) {
    const [who] = await ask(await v.in("/"), "who");
    assert.equal(who.auth, null);
  },

  async "may be mounted anywhere"(v) {
    const socket = await v.in("/", { path: "/sub/path/socket.io/" });
    assert.deepEqual(await ask(socket, "echo", 1), [1]);
  },

  async "is refused in the handler's words"(v) {
    const socket = v.to("/refused");
    const [err] = await next(socket, "connect_error");
    assert.equal(err.message, "No conversation_id in query params");
    assert.deepEqual(err.data, { msg_id: "X" });
    assert.equal(socket.connected, false);
  },

  async "is refused an unknown namespace"(v) {
    const [err] = await next(v.to("/unknown"), "connect_error");
    assert.equal(err.message, "Invalid namespace");
  },

  async "uses several namespaces on one connection"(v) {
    const main = await v.in("/");
    const other = main.io.socket("/other", { auth: { n: 2 } }); // asks at once, as the manager is open
    const refused = main.io.socket("/refused", {});
    v.open.push(other, refused);
    await Promise.all([next(other, "connect"), next(refused, "connect_error")]);
    assert.notEqual(main.id, other.id);
    const [[a], [b]] = await Promise.all([ask(main, "who"), ask(other, "who")]);
    assert.equal(a.namespace, "/");
    assert.equal(b.namespace, "/other");
    assert.deepEqual(b.auth, { n: 2 });
    assert.equal(a.connection, b.connection);
    other.disconnect();
    assert.deepEqual(await ask(main, "echo", "still there"), ["still there"]);
  },

  async "acknowledges both ways"(v) {
    const socket = await v.in("/");
    assert.deepEqual(await ask(socket, "echo", 1, "2", { 3: [true, null] }), [1, "2", { 3: [true, null] }]);
    assert.deepEqual(await ask(socket, "echo"), []);
    socket.on("question", (a, b, answer) => answer(a + b, { sum: true }));
    const answered = next(socket, "answered");
    socket.emit("call me", 20, 22);
    assert.deepEqual(await answered, [42, { sum: true }]);
  },

  async "carries binary both ways"(v) {
    const socket = await v.in("/");
    const bytes = Buffer.from(range(256));
    const back = await ask(socket, "echo", bytes, "text", new Uint8Array([1, 2, 3]), Buffer.alloc(0));
    assert.deepEqual(Buffer.from(back[0]), bytes);
    assert.equal(back[1], "text");
    assert.deepEqual(Buffer.from(back[2]), Buffer.from([1, 2, 3]));
    assert.equal(Buffer.from(back[3]).length, 0);
    const said = next(socket, "said");
    socket.emit("say", Buffer.alloc(300_000, 7));
    assert.deepEqual(Buffer.from((await said)[0]), Buffer.alloc(300_000, 7));
  },

  async "carries a megabyte of text"(v) {
    const socket = await v.in("/");
    const text = "0123456789abcdeé".repeat(1 << 16);
    assert.deepEqual(await ask(socket, "echo", text), [text]);
  },

  async "carries all characters"(v) {
    const socket = await v.in("/");
    const texts = ["日本語 🚢 👩‍👩‍👧‍👦 é e\u0301 ß", "\u0000\u001e\u001f\u007f\u2028\u2029\ufeff", "\"\\\n</script>", "\u{10ffff}", ""];
    assert.deepEqual(await ask(socket, "echo", ...texts), texts);
    const said = next(socket, "said");
    socket.emit("say", { "ключ 🔑": texts });
    assert.deepEqual(await said, [{ "ключ 🔑": texts }]);
  },

  // The first of them travel while the transport changes.
  async "keeps a thousand events in order, both ways"(v) {
    const socket = v.to("/");
    const seen = [];
    const all = new Promise((resolve) => socket.on("number", (i) => seen.push(i) === 1000 && resolve()));
    socket.emit("count", 1000); // waits for the connection
    for (const i of range(1000)) {
      socket.emit("note", i);
    }
    await all;
    assert.deepEqual(seen, range(1000));
    assert.deepEqual(await ask(socket, "notes"), [range(1000)]);
  },

  async "keeps volatile events in order"(v) {
    const socket = await v.in("/");
    for (const i of range(1000)) {
      if (i % 50 === 0) { // what is volatile needs an idle transport
        await Promise.all([next(socket.io.engine, "drain"), ask(socket, "echo")]);
      }
      socket.volatile.emit("note", i);
    }
    const [notes] = await ask(socket, "notes");
    assert.deepEqual(notes, [...new Set(notes)].sort((a, b) => a - b));
    assert.ok(notes.length > 0);
  },

  async "comes back and continues where it was"(v, mode) {
    const socket = v.to("/recover", { query: { recover: 1, log: `${version} ${Math.random()}` } });
    const seen = [];
    let more;
    socket.on("event", (i) => seen.push(i) && more?.());
    const until = (n) => new Promise((resolve) => (more = () => seen.length >= n && resolve())).finally(() => (more = null));
    const ten = until(10);
    await next(socket, "connect");
    assert.ok(!socket.recovered);
    await ten;
    await settled(socket, mode);
    await ask(socket, "sync"); // so that the last offset is there too
    const first = socket.id;
    const [lost, rest] = [next(socket, "disconnect"), until(recovers ? 15 : 25)];
    const again = new Promise((resolve) => lost.then(() => socket.once("connect", resolve)));
    socket.emit("grow and cut", 5);
    assert.equal((await lost)[0], "transport close");
    await again;
    await rest;
    assert.notEqual(socket.id, first);
    if (recovers) {
      assert.equal(socket.recovered, true);
      assert.deepEqual(seen, range(15));
    } else {
      assert.deepEqual(seen, [...range(10), ...range(15)]);
    }
  },

  async "stays away when it is disconnected"(v) {
    const socket = await v.in("/");
    let attempts = 0;
    socket.io.on("reconnect_attempt", () => attempts++);
    const end = next(socket, "disconnect");
    socket.emit("throw me out");
    assert.equal((await end)[0], "io server disconnect");
    await ask(await v.in("/"), "echo"); // takes longer than it would wait
    assert.equal(attempts, 0);
    socket.connect(); // it may, when it wants to
    await next(socket, "connect");
    assert.deepEqual(await ask(socket, "echo", 1), [1]);
  },

  async "is heard when it leaves at once"(v) {
    const id = `${version} ${Math.random()}`;
    const hasty = await v.in("/");
    hasty.emit("keep", id);
    hasty.disconnect();
    assert.deepEqual(await ask(await v.in("/"), "kept", id), [id]);
  },

  async "lives with others at the same time"(v) {
    await Promise.all(range(8).map(async (n) => {
      const socket = await v.in(n % 2 ? "/" : "/other");
      for (const i of range(10)) {
        assert.deepEqual(await ask(socket, "echo", n, i), [n, i]);
      }
    }));
  },
};

(async () => {
  for (const [mode, transports] of Object.entries(modes)) {
    for (const [name, run] of Object.entries(cases)) {
      if (light && heavy(mode, name)) {
        continue;
      }
      const v = visit(transports);
      const line = { name: `${mode}: ${name}` };
      try {
        await run(v, mode);
      } catch (err) {
        line.error = String(err.stack ?? err);
      }
      v.open.forEach((socket) => socket.disconnect());
      console.log(JSON.stringify(line));
    }
  }
  console.log('"end"');
  process.exit(0);
})();
