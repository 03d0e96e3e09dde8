/** Push messages to this browser. Knows no React. */

import type { AddPushSubscription, PushKey } from "../../client/api";
import { request } from "../../client/http";
import { SERVICE_WORKER } from "../../client/serviceWorker";

const SUBSCRIPTIONS = "/v1/channels/webpush/subscriptions";

export const canPush = (): boolean =>
  "serviceWorker" in navigator && "PushManager" in window && "Notification" in window;

/** Whether this browser gets messages now. */
export async function isSubscribed(): Promise<boolean> {
  const registration = await navigator.serviceWorker.getRegistration(SERVICE_WORKER);
  return (await registration?.pushManager.getSubscription()) != null;
}

/** Must be called from a click: browsers refuse to ask otherwise. */
export async function subscribe(label: string): Promise<void> {
  if ((await Notification.requestPermission()) !== "granted") {
    throw new Error("This browser does not allow messages from Freehold. Allow them in its settings for this page.");
  }
  const registration = await navigator.serviceWorker.register(SERVICE_WORKER);
  await navigator.serviceWorker.ready;
  const { key } = await request<PushKey>("/v1/channels/webpush/key");
  const made = await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  const { endpoint, keys } = made.toJSON();
  const body: AddPushSubscription = {
    endpoint: endpoint ?? "",
    p256dh: keys?.p256dh ?? "",
    auth: keys?.auth ?? "",
    label,
  };
  await request(SUBSCRIPTIONS, { method: "POST", body });
}

/** This browser forgets its own subscription. The gateway forgets it with `remove`. */
export async function unsubscribe(): Promise<void> {
  const registration = await navigator.serviceWorker.getRegistration(SERVICE_WORKER);
  const subscription = await registration?.pushManager.getSubscription();
  await subscription?.unsubscribe();
}

export const removeBrowser = (id: string): Promise<unknown> =>
  request(`${SUBSCRIPTIONS}/${encodeURIComponent(id)}`, { method: "DELETE" });
