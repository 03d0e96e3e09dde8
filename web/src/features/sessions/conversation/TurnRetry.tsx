import { useState } from "react";
import type { PromptImage, SendPrompt } from "../../../client/api";
import { download, request } from "../../../client/http";
import { useToasts } from "../../../ui/Toasts";
import { toBase64 } from "../composer/imageReader";
import type { Item } from "./transcript.logic";
import { useTranscript } from "./transcriptContext";

const CONTINUE = "Continue";

/** After the last turn failed: sends its prompt again, or asks the agent to go on from where it stopped. */
export function TurnRetry({ turn }: { turn: number }) {
  const { session, lastPrompt } = useTranscript();
  const [busy, setBusy] = useState(false);
  const toasts = useToasts();
  if (lastPrompt === null || lastPrompt.turn !== turn) return null;
  const path = `/v1/sessions/${encodeURIComponent(session)}`;

  async function send(prompt: () => Promise<Omit<SendPrompt, "key">>) {
    setBusy(true);
    try {
      const body: SendPrompt = { ...(await prompt()), key: crypto.randomUUID() };
      await request(`${path}/prompt`, { method: "POST", body });
    } catch (error) {
      toasts.failed(error);
    }
    setBusy(false);
  }
  return (
    <div className="toolbar">
      <button
        type="button"
        className="small"
        disabled={busy}
        onClick={() =>
          void send(async () => ({
            text: lastPrompt.text,
            files: lastPrompt.files,
            images: await readImages(path, lastPrompt),
          }))
        }
      >
        Try again
      </button>
      <button
        type="button"
        className="small"
        disabled={busy}
        onClick={() => void send(async () => ({ text: CONTINUE }))}
      >
        Continue
      </button>
    </div>
  );
}

/** The images of a prompt as they were sent. */
function readImages(path: string, { turn, images }: Extract<Item, { kind: "prompt" }>): Promise<PromptImage[]> {
  return Promise.all(
    images.map(async ({ mime }, place) => {
      const { bytes } = await download(`${path}/turns/${turn}/images/${place}`);
      return { mime: mime as PromptImage["mime"], data: toBase64(bytes) };
    }),
  );
}
