/** The service worker of the page, and the news that it brings. */

import { SERVICE_WORKER } from "../client/serviceWorker";

const UPDATED = "freehold:updated";

/** Keeps the frame of the page in the browser. Where service workers are not allowed, nothing is kept. */
export function keepOffline(): void {
  const { serviceWorker } = navigator;
  if (import.meta.env.DEV || serviceWorker === undefined) return;
  const wasControlled = serviceWorker.controller !== null;
  serviceWorker.addEventListener("controllerchange", () => {
    if (wasControlled) window.dispatchEvent(new Event(UPDATED));
  });
  const register = () => void serviceWorker.register(SERVICE_WORKER).catch(() => undefined);
  // This code may arrive after the page was loaded.
  if (document.readyState === "complete") register();
  else window.addEventListener("load", register);
}

/** Calls this when Freehold has another version than the page that is open. */
export function onUpdated(listener: () => void): () => void {
  window.addEventListener(UPDATED, listener);
  return () => window.removeEventListener(UPDATED, listener);
}
