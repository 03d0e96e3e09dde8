import { request } from "../../../client/http";
import { useToasts } from "../../../ui/Toasts";
import { useTranscript } from "./transcriptContext";

const CONTINUE = "Continue";

/** After the last turn failed: sends its prompt again, or asks the agent to go on from where it stopped. */
export function TurnRetry({ turn }: { turn: number }) {
  const { session, lastPrompt } = useTranscript();
  const toasts = useToasts();
  if (lastPrompt === null || lastPrompt.turn !== turn) return null;
  const send = (text: string, files: readonly string[]) =>
    void request(`/v1/sessions/${encodeURIComponent(session)}/prompt`, {
      method: "POST",
      body: { text, files, key: crypto.randomUUID() },
    }).catch(toasts.failed);
  return (
    <div className="toolbar">
      {lastPrompt.images.length === 0 && (
        <button type="button" className="small" onClick={() => send(lastPrompt.text, lastPrompt.files)}>
          Try again
        </button>
      )}
      <button type="button" className="small" onClick={() => send(CONTINUE, [])}>
        Continue
      </button>
    </div>
  );
}
