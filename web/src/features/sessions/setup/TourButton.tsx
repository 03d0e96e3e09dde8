import { useState } from "react";
import type { SendPrompt, Tour } from "../../../client/api";
import { request } from "../../../client/http";
import { Icon } from "../../../ui/Icon";
import { go, sessionPath } from "../../../ui/route";
import { useToasts } from "../../../ui/Toasts";

/** Starts the tour: a real agent changes a file, with a script in the place of a model. */
export function TourButton() {
  const [busy, setBusy] = useState(false);
  const toasts = useToasts();

  async function start() {
    setBusy(true);
    try {
      const tour = await request<Tour>("/v1/tour", { method: "POST" });
      const body: SendPrompt = { text: tour.prompt, key: crypto.randomUUID() };
      await request(`/v1/sessions/${encodeURIComponent(tour.session)}/prompt`, { method: "POST", body });
      go(sessionPath(tour.session));
    } catch (error) {
      toasts.failed(error);
    }
    setBusy(false);
  }

  return (
    <>
      <button type="button" className="text-button" disabled={busy} onClick={() => void start()}>
        <Icon name="preview" size={16} /> {busy ? "Starting the tour…" : "Take a tour first, without a model"}
      </button>
      <p className="quiet small-print">A script answers in the place of a model. Everything else is real.</p>
    </>
  );
}
