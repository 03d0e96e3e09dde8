import { createContext, useContext } from "react";
import type { Action } from "../../history/history.logic";
import type { Changes } from "./transcript.logic";
import type { Fate } from "./turns.logic";

/** What the parts of a transcript share. */
export interface Shared {
  session: string;
  /** Folds that are not as they begin; they stay so when they are scrolled out of sight. */
  folds: ReadonlySet<string>;
  fold: (key: string) => void;
  /** Turns that are over. */
  ended: ReadonlySet<number>;
  fateOf: (turn: number, changes: Changes) => Fate;
  act: (action: Action) => void;
  rewind: (turn: number) => void;
}

export const Sharing = createContext<Shared | null>(null);

export function useShared(): Shared {
  const shared = useContext(Sharing);
  if (shared === null) throw new Error("outside of a transcript");
  return shared;
}

/** Whether a fold is open, and what turns it. */
export function useFold(key: string, begins = false): [open: boolean, turn: () => void] {
  const { folds, fold } = useShared();
  return [folds.has(key) !== begins, () => fold(key)];
}
