// Shows notifications. There is no fetch handler and no cache: every page comes from the server,
// and nothing private is kept here.
const scope = self.registration.scope;

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("push", (event) => {
  let message = {};
  try {
    message = event.data.json();
  } catch {
    // A browser shows a text of its own if nothing is shown.
  }
  if (!message.title) return;
  // Handle messages one at a time, because each must see the notifications shown by the previous one.
  last = last.then(() => show(message)).catch(() => {});
  event.waitUntil(last);
});

let last = Promise.resolve();

async function show({ title, body, path, tag, event }) {
  const url = new URL(path, scope).href;
  const windows = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  if (windows.some((w) => w.focused && (w.url + "/").startsWith(url + "/"))) return; // it is on the screen
  // The same event may arrive twice; only another one makes a sound again.
  const shown = await self.registration.getNotifications({ tag });
  const again = shown.some((n) => n.data?.event === event);
  // Browsers require a notification for every push message, so a late message shows the newer notification again.
  const newer = shown.find((n) => n.data?.event > event);
  if (newer) return self.registration.showNotification(newer.title, { body: newer.body, tag, icon: newer.icon, data: newer.data });
  await self.registration.showNotification(title, {
    body,
    tag,
    renotify: shown.length > 0 && !again,
    icon: new URL("ui/icon-192.png", scope).href,
    data: { url, event },
  });
}

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const url = event.notification.data?.url ?? scope;
  if (url.startsWith(scope)) event.waitUntil(open(url));
});

async function open(url) {
  const windows = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const there = windows.find((w) => w.url === url);
  if (there) return there.focus();
  return self.clients.openWindow(url);
}
