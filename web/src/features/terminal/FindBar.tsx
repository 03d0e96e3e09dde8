import { useState } from "react";
import { Icon } from "../../ui/Icon";
import type { Matches } from "./terminalView";

interface FindBarProps {
  matches: Matches | null;
  onFind: (text: string, backwards: boolean) => void;
  onClose: () => void;
}

/** Searches the output of a terminal, including what was scrolled away. */
export function FindBar({ matches, onFind, onClose }: FindBarProps) {
  const [text, setText] = useState("");
  return (
    <div className="terminal-find" role="search" aria-label="Find in this terminal">
      <input
        autoFocus
        type="search"
        aria-label="Find in this terminal"
        placeholder="Find"
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          onFind(event.target.value, true);
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") onFind(text, !event.shiftKey);
          else if (event.key === "Escape") onClose();
          else return;
          event.preventDefault();
        }}
      />
      <span className="quiet" role="status">
        {text === "" || matches === null
          ? ""
          : matches.count === 0
            ? "no match"
            : matches.position > 0
              ? `${matches.position} of ${matches.count}`
              : `${matches.count}`}
      </span>
      <button
        className="plain-button terminal-find-up"
        aria-label="Previous match"
        title="Previous match (Enter)"
        onClick={() => onFind(text, true)}
      >
        <Icon name="back" size={16} />
      </button>
      <button
        className="plain-button terminal-find-down"
        aria-label="Next match"
        title="Next match (Shift Enter)"
        onClick={() => onFind(text, false)}
      >
        <Icon name="chevron" size={16} />
      </button>
      <button className="plain-button" aria-label="Close search" title="Close (Esc)" onClick={onClose}>
        <Icon name="close" size={16} />
      </button>
    </div>
  );
}
