import { useEffect, useRef, useState } from "react";
import { Icon } from "../../../ui/Icon";
import { useToasts } from "../../../ui/Toasts";
import { dictationProblem, finalWords, findRecognition, type SpeechRecognizer } from "./dictation.logic";

/** Writes down what is said, where the browser can. The browser may send the sound to its own maker. */
export function DictateButton({ onWords }: { onWords: (words: string) => void }) {
  const [running, setRunning] = useState<SpeechRecognizer | null>(null);
  const toasts = useToasts();
  const latest = useRef(onWords);
  useEffect(() => {
    latest.current = onWords;
  });
  useEffect(() => () => running?.stop(), [running]);
  const Recognition = findRecognition();
  if (Recognition === null) return null;

  function start(made: SpeechRecognizer) {
    made.lang = document.documentElement.lang || navigator.language;
    made.continuous = true;
    made.interimResults = false;
    made.onresult = (event) => latest.current(finalWords(event));
    made.onerror = ({ error }) => {
      const problem = dictationProblem(error);
      if (problem !== null) toasts.refused(problem);
    };
    made.onend = () => setRunning(null);
    made.start();
    setRunning(made);
  }
  return (
    <button
      type="button"
      className="plain-button"
      aria-label="Dictate"
      aria-pressed={running !== null}
      title="Dictate. Your browser recognises the words, and may send the sound to its maker for that."
      onClick={() => (running === null ? start(new Recognition()) : running.stop())}
    >
      <Icon name="microphone" size={18} />
    </button>
  );
}
