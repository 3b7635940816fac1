// Notifications of this browser: by web push, or by the open page where there is no push service.
import { api, ApiError, baseUrl, data } from "./api";
import { describe, quiet } from "./notice-rules";
import { browserStorage } from "./storage";

/** Remembers how this browser is notified: the ID of its device, or "page". */
const name = "deckhand-notifications";

export type Result = "push" | "page" | "denied";

/** supported is false in browsers without notifications, and on pages that are not secure. */
export const supported = () => "serviceWorker" in navigator && "Notification" in window;

/** mode is how this browser is notified: the ID of its device, "page", or "" if it is not. */
export const mode = () => (supported() && Notification.permission === "granted" ? (browserStorage.get(name) ?? "") : "");

async function worker(): Promise<ServiceWorkerRegistration> {
  await navigator.serviceWorker.register(`${baseUrl}/sw.js`, { updateViaCache: "none" });
  return navigator.serviceWorker.ready;
}

/** enable asks the user for permission and subscribes this browser. */
export async function enable(publicKey: string): Promise<Result> {
  if ((await Notification.requestPermission()) !== "granted") return "denied";
  const registration = await worker();
  try {
    const { endpoint, keys } = await subscription(registration, publicKey);
    const body = { endpoint: endpoint!, keys: { p256dh: keys!.p256dh!, auth: keys!.auth! }, description: describe(navigator.userAgent) };
    browserStorage.set(name, (await data(api.POST("/api/notifications/devices", { body }))).id);
    return "push";
  } catch (err) {
    if (err instanceof ApiError) throw err;
    browserStorage.set(name, "page"); // there is no push service, or it cannot be reached
    return "page";
  }
}

/** A subscription with another key is of another server at the same address. */
async function subscription(registration: ServiceWorkerRegistration, publicKey: string): Promise<PushSubscriptionJSON> {
  const wanted = { userVisibleOnly: true, applicationServerKey: publicKey };
  try {
    return (await registration.pushManager.subscribe(wanted)).toJSON();
  } catch (err) {
    const old = await registration.pushManager.getSubscription();
    if (!old) throw err;
    await old.unsubscribe();
    return (await registration.pushManager.subscribe(wanted)).toJSON();
  }
}

/** disable unsubscribes this browser. */
export async function disable(): Promise<void> {
  const id = browserStorage.get(name);
  browserStorage.remove(name);
  if (!id) return;
  const registration = await navigator.serviceWorker.getRegistration(baseUrl + "/");
  await (await registration?.pushManager?.getSubscription())?.unsubscribe();
  if (id !== "page") await api.DELETE("/api/notifications/devices/{device_id}", { params: { path: { device_id: id } } });
}

/** isMuted reports whether a conversation is muted. */
export const isMuted = async (id: string) => !!(await data(api.GET("/api/notifications"))).muted_conversations?.includes(id);

/** mute mutes a conversation, or unmutes it. */
export async function mute(id: string, muted: boolean): Promise<void> {
  await api.PUT("/api/conversations/{conversation_id}/notifications", { params: { path: { conversation_id: id } }, body: { muted } });
}

const kinds: Record<string, string> = {
  awaiting_user_confirmation: "approval",
  awaiting_user_input: "question",
  finished: "finished",
  error: "failed",
};

/** announce notifies by the page, if nothing else does and the page is hidden. */
export async function announce(id: string, title: string, state: string, text: string): Promise<void> {
  const kind = kinds[state];
  if (mode() !== "page" || !document.hidden || !kind) return;
  const wishes = await data(api.GET("/api/notifications"));
  if (!wishes.events?.includes(kind) || wishes.muted_conversations?.includes(id)) return;
  if (wishes.quiet_hours && quiet(wishes.quiet_hours, new Date())) return;
  await (
    await worker()
  ).showNotification(title, {
    body: text,
    tag: id,
    icon: `${baseUrl}/ui/icon-192.png`,
    data: { url: `${baseUrl}/conversations/${id}` },
  });
}
