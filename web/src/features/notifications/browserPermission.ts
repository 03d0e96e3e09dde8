import { useSyncExternalStore } from "react";

/**
 * `unsupported`: the browser has no notifications; `ask`: its permission was not requested yet; `denied`: it refuses;
 * `off`: the owner wants none.
 */
export type NotificationState = "unsupported" | "ask" | "denied" | "on" | "off";

const KEY = "freehold.notify";
const CHANGED = "freehold:notify";

// Reading it waits for another process of the browser. The owner can change it there, and then comes back to the page.
let permission: NotificationPermission | null = null;

function notificationState(): NotificationState {
  if (!("Notification" in window)) return "unsupported";
  permission ??= Notification.permission;
  switch (permission) {
    case "denied":
      return "denied";
    case "granted":
      return localStorage.getItem(KEY) === "off" ? "off" : "on";
    default:
      return "ask";
  }
}

function listen(changed: () => void): () => void {
  const readAgain = () => {
    permission = null;
    changed();
  };
  window.addEventListener(CHANGED, readAgain);
  window.addEventListener("focus", readAgain);
  window.addEventListener("storage", changed);
  return () => {
    window.removeEventListener(CHANGED, readAgain);
    window.removeEventListener("focus", readAgain);
    window.removeEventListener("storage", changed);
  };
}

export const useNotificationState = (): NotificationState => useSyncExternalStore(listen, notificationState);

/** Must be called from a click: browsers refuse to ask otherwise. */
export async function enableNotifications(): Promise<NotificationState> {
  if (notificationState() === "ask") permission = await Notification.requestPermission();
  localStorage.setItem(KEY, "on");
  window.dispatchEvent(new Event(CHANGED));
  return notificationState();
}

export function disableNotifications(): void {
  localStorage.setItem(KEY, "off");
  window.dispatchEvent(new Event(CHANGED));
}
