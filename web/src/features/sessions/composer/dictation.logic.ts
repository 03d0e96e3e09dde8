/** Speech recognition of the browser itself, as far as it is used here. */
export interface SpeechRecognizer {
  lang: string;
  continuous: boolean;
  interimResults: boolean;
  onresult: ((event: SpeechResults) => void) | null;
  onerror: ((event: { error: string }) => void) | null;
  onend: (() => void) | null;
  start: () => void;
  stop: () => void;
}

export interface SpeechResults {
  resultIndex: number;
  results: ArrayLike<{ isFinal: boolean; 0?: { transcript: string } }>;
}

type Recognition = new () => SpeechRecognizer;

/** What the browser recognises speech with; null where it cannot. */
export function findRecognition(browser: object = window): Recognition | null {
  const known = browser as { SpeechRecognition?: Recognition; webkitSpeechRecognition?: Recognition };
  return known.SpeechRecognition ?? known.webkitSpeechRecognition ?? null;
}

/** The words that are certain now. */
export function finalWords({ resultIndex, results }: SpeechResults): string {
  let words = "";
  for (let at = resultIndex; at < results.length; at++) {
    const result = results[at];
    if (result?.isFinal) words += result[0]?.transcript ?? "";
  }
  return words.trim();
}

/** A text with words after it, with a space between. */
export const withWords = (text: string, words: string): string =>
  words === "" ? text : text === "" || /\s$/.test(text) ? `${text}${words} ` : `${text} ${words} `;

/** Why it ended, to the owner; null when there is nothing to say. */
export function dictationProblem(error: string): string | null {
  if (error === "no-speech" || error === "aborted") return null;
  if (error === "not-allowed" || error === "service-not-allowed")
    return "The browser does not let this page use the microphone";
  if (error === "network") return "The browser's recognition of speech cannot be reached";
  if (error === "audio-capture") return "There is no microphone";
  return "The browser could not recognise speech";
}
