import { useSyncExternalStore } from "react";

/**
 * `unsupported`: the browser has no notifications; `ask`: its permission was not requested yet; `denied`: it refuses;
 * `off`: the owner wants none.
 */
export type NotificationState = "unsupported" | "ask" | "denied" | "on" | "off";

const KEY = "freehold.notify";
const CHANGED = "freehold:notify";

function notificationState(): NotificationState {
  if (!("Notification" in window)) return "unsupported";
  switch (Notification.permission) {
    case "denied":
      return "denied";
    case "granted":
      return localStorage.getItem(KEY) === "off" ? "off" : "on";
    default:
      return "ask";
  }
}

function listen(changed: () => void): () => void {
  window.addEventListener(CHANGED, changed);
  window.addEventListener("storage", changed);
  return () => {
    window.removeEventListener(CHANGED, changed);
    window.removeEventListener("storage", changed);
  };
}

export const useNotificationState = (): NotificationState => useSyncExternalStore(listen, notificationState);

/** Must be called from a click: browsers refuse to ask otherwise. */
export async function enableNotifications(): Promise<NotificationState> {
  if (notificationState() === "ask") await Notification.requestPermission();
  localStorage.setItem(KEY, "on");
  window.dispatchEvent(new Event(CHANGED));
  return notificationState();
}

export function disableNotifications(): void {
  localStorage.setItem(KEY, "off");
  window.dispatchEvent(new Event(CHANGED));
}
