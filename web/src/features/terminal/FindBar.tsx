import { useState } from "react";
import { Icon } from "../../ui/Icon";

interface FindBarProps {
  matches: { at: number; count: number } | null;
  onFind: (words: string, back: boolean) => void;
  onClose: () => void;
}

/** Looks through what a terminal has shown, the scrollback included. */
export function FindBar({ matches, onFind, onClose }: FindBarProps) {
  const [words, setWords] = useState("");
  return (
    <div className="find-bar" role="search" aria-label="Find in this terminal">
      <input
        autoFocus
        type="search"
        aria-label="Find in this terminal"
        placeholder="Find"
        value={words}
        onChange={(event) => {
          setWords(event.target.value);
          onFind(event.target.value, true);
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") onFind(words, !event.shiftKey);
          else if (event.key === "Escape") onClose();
          else return;
          event.preventDefault();
        }}
      />
      <span className="quiet" role="status">
        {words === "" || matches === null ? "" : matches.count === 0 ? "none" : matches.at > 0 ? `${matches.at} of ${matches.count}` : `${matches.count}`}
      </span>
      <button className="plain-button up" aria-label="Further up" title="Further up (Enter)" onClick={() => onFind(words, true)}>
        <Icon name="back" size={16} />
      </button>
      <button className="plain-button down" aria-label="Further down" title="Further down (Shift Enter)" onClick={() => onFind(words, false)}>
        <Icon name="chevron" size={16} />
      </button>
      <button className="plain-button" aria-label="Stop finding" title="Close (Esc)" onClick={onClose}>
        <Icon name="close" size={16} />
      </button>
    </div>
  );
}
