import type { OutgoingPrompt } from "./outbox.logic";

interface UnsentPromptsProps {
  prompts: readonly OutgoingPrompt[];
  onTakeBack: (prompt: OutgoingPrompt) => void;
}

/** Messages that the gateway has not accepted yet. */
export function UnsentPrompts({ prompts, onTakeBack }: UnsentPromptsProps) {
  return prompts.map((prompt) => (
    <div key={prompt.key} className="composer-note" role="status">
      <span className="spinner" aria-hidden="true" />
      <p>
        Not sent yet. It is sent when Freehold answers: <q>{prompt.text}</q>
      </p>
      <button type="button" className="small" onClick={() => onTakeBack(prompt)}>
        Edit
      </button>
    </div>
  ));
}
