export interface WaitingText {
  /** The place in the queue. */
  place: string;
  /** Why it waits, in pieces. A setting is shown as code. */
  reason: readonly { text: string; isSetting: boolean }[];
}

/** The sentence about a place in the queue: "Waiting: 2nd of 9; why. `setting` allows more". */
export function readWaiting(message: string): WaitingText {
  const cut = message.indexOf("; ");
  if (cut < 0) return { place: message, reason: [] };
  const reason = message.slice(cut + 2);
  return {
    place: message.slice(0, cut),
    reason: (reason.charAt(0).toUpperCase() + reason.slice(1))
      .split("`")
      .map((text, index) => ({ text, isSetting: index % 2 === 1 }))
      .filter((piece) => piece.text !== ""),
  };
}
