import { createContext, useContext } from "react";
import type { HistoryAction } from "../../history/history.logic";
import type { Changes, Item } from "./transcript.logic";
import type { TurnState } from "./turnState.logic";

/** What the items of a transcript share. */
export interface TranscriptShared {
  session: string;
  /** Items that are not folded or unfolded as they are at first. They stay so when they are scrolled out of sight. */
  toggled: ReadonlySet<string>;
  toggle: (key: string) => void;
  endedTurns: ReadonlySet<number>;
  /** The newest prompt of the owner. */
  lastPrompt: Extract<Item, { kind: "prompt" }> | null;
  turnStateOf: (turn: number, changes: Changes) => TurnState;
  onAction: (action: HistoryAction) => void;
  onRewind: (turn: number) => void;
}

export const TranscriptContext = createContext<TranscriptShared | null>(null);

export function useTranscript(): TranscriptShared {
  const shared = useContext(TranscriptContext);
  if (shared === null) throw new Error("useTranscript needs a TranscriptContext");
  return shared;
}

/** Whether an item is unfolded, and how to change that. */
export function useFold(key: string, isOpenAtFirst = false): [open: boolean, toggle: () => void] {
  const { toggled, toggle } = useTranscript();
  return [toggled.has(key) !== isOpenAtFirst, () => toggle(key)];
}
