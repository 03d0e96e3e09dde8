import type { PromptImage, SendPrompt } from "../../../client/api";

/** A prompt that is being sent. Its key stays the same for every try, so that it becomes one turn or none. */
export interface OutgoingPrompt {
  key: string;
  text: string;
  files: string[];
  images: PromptImage[];
  when: NonNullable<SendPrompt["when"]>;
}

export const bodyOf = ({ key, text, files, images, when }: OutgoingPrompt): SendPrompt => ({
  key,
  text,
  files,
  images: images.map(({ mime, data }) => ({ mime, data })),
  when,
});

/**
 * Whether a failed request may have been received: the gateway did not answer, or was not ready. That no new work is
 * accepted is an answer.
 */
export const isUncertain = (status: number, code = ""): boolean =>
  (status === 0 || status === 502 || status === 503 || status === 504) && code !== "orchestrator.unavailable";

const MAX_STORED = 2_000_000;

/** The text to store for prompts that are not sent yet. Prompts whose images are too large to store are left out. */
export function serialize(prompts: readonly OutgoingPrompt[]): string | null {
  if (prompts.length === 0) return null;
  const text = JSON.stringify(prompts);
  return text.length <= MAX_STORED ? text : JSON.stringify(prompts.filter((prompt) => prompt.images.length === 0));
}

export function parse(text: string | null): OutgoingPrompt[] {
  try {
    const found: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(found) ? found.filter(isPrompt) : [];
  } catch {
    return [];
  }
}

function isPrompt(value: unknown): value is OutgoingPrompt {
  const prompt = value as Partial<OutgoingPrompt> | null;
  return (
    typeof prompt?.key === "string" &&
    typeof prompt.text === "string" &&
    Array.isArray(prompt.files) &&
    Array.isArray(prompt.images)
  );
}

/** The key of a prompt. A prompt that was taken back and is sent again unchanged keeps its key: it may have arrived. */
export function keyFor(
  prompt: Omit<OutgoingPrompt, "key" | "when">,
  takenBack: OutgoingPrompt | null,
  newKey: () => string,
): string {
  const dataOf = (images: readonly PromptImage[]) => JSON.stringify(images.map((image) => image.data));
  const isSame =
    takenBack !== null &&
    takenBack.text === prompt.text &&
    JSON.stringify(takenBack.files) === JSON.stringify(prompt.files) &&
    dataOf(takenBack.images) === dataOf(prompt.images);
  return isSame ? takenBack.key : newKey();
}
