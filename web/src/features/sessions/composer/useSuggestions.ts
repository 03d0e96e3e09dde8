import { useState } from "react";
import type { OfferedCommand } from "../../../client/api";
import { useCandidates } from "./files";
import { bestCommands, bestFiles, complete, tokenAt, type Token } from "./suggest.logic";
import type { Suggestion } from "./Suggestions";

const NOTES = { asking: "Looking…", there: "No file is called that", failed: "The files could not be listed" } as const;

export interface Suggesting {
  token: Token | null;
  all: readonly Suggestion[];
  chosen: number;
  note: string;
  /** Whether keys are for the list. */
  active: boolean;
  step: (by: 1 | -1) => void;
  pick: (index: number) => { text: string; caret: number; file: string | null } | null;
  /** The caret moved or the text changed. */
  look: (text: string, caret: number) => void;
  close: () => void;
}

/** What the word under the caret could become. */
export function useSuggestions(commands: readonly OfferedCommand[]): Suggesting {
  const [at, setAt] = useState<{ text: string; token: Token } | null>(null);
  const [chosen, setChosen] = useState(0);
  const [closed, setClosed] = useState<number | null>(null);
  const token = at?.token ?? null;
  const candidates = useCandidates(token?.kind === "file");
  const shown = token !== null && closed !== token.from && !(token.kind === "command" && commands.length === 0);
  const all: Suggestion[] =
    !shown || token === null
      ? []
      : token.kind === "file"
        ? bestFiles(candidates.files, token.query).map((one) => ({ word: one.path, about: "", icon: one.folder ? "folder" : "file" }))
        : bestCommands(commands, token.query).map((one) => ({ word: one.name, about: one.description, icon: "terminal" }));
  const index = Math.min(chosen, Math.max(0, all.length - 1));
  return {
    token: shown ? token : null,
    all,
    chosen: index,
    note: token?.kind === "file" ? NOTES[candidates.state] : "The agent has no such command",
    active: all.length > 0,
    step: (by) => setChosen((index + by + all.length) % all.length),
    pick: (which) => {
      const word = all[which]?.word;
      if (at === null || word === undefined) return null;
      setAt(null);
      return { ...complete(at.text, at.token, word), file: at.token.kind === "file" ? word : null };
    },
    look: (text, caret) => {
      const found = tokenAt(text, caret);
      if (found === null || found.from !== token?.from) setClosed(null);
      if (found?.query !== token?.query) setChosen(0);
      setAt(found === null ? null : { text, token: found });
    },
    close: () => setClosed(token?.from ?? null),
  };
}
