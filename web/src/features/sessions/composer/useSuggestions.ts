import { useState } from "react";
import type { OfferedCommand } from "../../../client/api";
import type { Suggestion } from "./SuggestionList";
import { bestCommands, bestFiles, complete, type Token, tokenAt } from "./suggestions.logic";
import { useWorkspaceFiles } from "./useWorkspaceFiles";

const NOTES = {
  loading: "Loading…",
  loaded: "No file matches",
  failed: "The files could not be listed",
} as const;

export interface Suggestions {
  token: Token | null;
  all: readonly Suggestion[];
  chosen: number;
  note: string;
  /** Whether arrow keys choose a suggestion. */
  active: boolean;
  /** Whether the chosen command is already typed in full. */
  isComplete: boolean;
  step: (by: 1 | -1) => void;
  accept: (index: number) => { text: string; caret: number; file: string | null } | null;
  /** The text changed or the caret moved. */
  update: (text: string, caret: number) => void;
  close: () => void;
}

/** Suggestions for the word at the caret. */
export function useSuggestions(commands: readonly OfferedCommand[]): Suggestions {
  const [current, setCurrent] = useState<{ text: string; token: Token } | null>(null);
  const [chosen, setChosen] = useState(0);
  /** Where the token starts whose suggestions were closed. */
  const [closedAt, setClosedAt] = useState<number | null>(null);
  const token = current?.token ?? null;
  const files = useWorkspaceFiles(token?.kind === "file");
  const hasNoCommands = token?.kind === "command" && commands.length === 0;
  const shown = token !== null && closedAt !== token.from && !hasNoCommands ? token : null;
  const all: Suggestion[] =
    shown === null
      ? []
      : shown.kind === "file"
        ? bestFiles(files.all, shown.query).map((file) => ({
            word: file.path,
            description: "",
            icon: file.isFolder ? "folder" : "file",
          }))
        : bestCommands(commands, shown.query).map((command) => ({
            word: command.name,
            description: command.description,
            icon: "terminal",
          }));
  const index = Math.min(chosen, Math.max(0, all.length - 1));
  return {
    token: shown,
    all,
    chosen: index,
    note: token?.kind === "file" ? NOTES[files.state] : "The agent has no such command",
    active: all.length > 0,
    isComplete: shown?.kind === "command" && all[index]?.word === shown.query,
    step: (by) => setChosen((index + by + all.length) % all.length),
    accept: (which) => {
      const word = all[which]?.word;
      if (current === null || word === undefined) return null;
      setCurrent(null);
      return {
        ...complete(current.text, current.token, word),
        file: current.token.kind === "file" ? word : null,
      };
    },
    update: (text, caret) => {
      const found = tokenAt(text, caret);
      if (found === null || found.from !== token?.from) setClosedAt(null);
      if (found?.query !== token?.query) setChosen(0);
      setCurrent(found === null ? null : { text, token: found });
    },
    close: () => setClosedAt(token?.from ?? null),
  };
}
