import { useSyncExternalStore } from "react";

/** `ask`: the browser has not been asked yet; `off`: the owner wants none; `denied`: the browser lets us send none. */
export type Standing = "absent" | "ask" | "denied" | "on" | "off";

const KEPT = "freehold.notify";
const CHANGED = "freehold:notify";

function standing(): Standing {
  if (!("Notification" in window)) return "absent";
  switch (Notification.permission) {
    case "denied":
      return "denied";
    case "granted":
      return localStorage.getItem(KEPT) === "off" ? "off" : "on";
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

export const useNotifying = (): Standing => useSyncExternalStore(listen, standing);

/** Only ever from the owner's own click. */
export async function turnOn(): Promise<Standing> {
  if (standing() === "ask") await Notification.requestPermission();
  localStorage.setItem(KEPT, "on");
  window.dispatchEvent(new Event(CHANGED));
  return standing();
}

export function turnOff(): void {
  localStorage.setItem(KEPT, "off");
  window.dispatchEvent(new Event(CHANGED));
}
