import { useEffect, useRef } from "react";
import { Icon } from "../../../ui/Icon";

interface FindBarProps {
  looked: string;
  /** Which of how many; `reading` while older ones are still read. */
  at: number;
  count: number;
  reading: boolean;
  onLook: (words: string) => void;
  onStep: (by: 1 | -1) => void;
  onClose: () => void;
}

/** Looks through the whole session: the browser's own search sees only what is drawn. */
export function FindBar({ looked, at, count, reading, onLook, onStep, onClose }: FindBarProps) {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const said = looked.trim() === "" ? "" : count === 0 ? (reading ? "" : "Nothing found") : `${at} of ${count}`;
  return (
    <div className="find" role="search" aria-label="In this session">
      <input
        ref={field}
        type="search"
        aria-label="Find in this session"
        placeholder="Find in this session"
        value={looked}
        onChange={(event) => onLook(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") onStep(event.shiftKey ? 1 : -1);
          else if (event.key === "Escape") onClose();
          else return;
          event.preventDefault();
          event.stopPropagation();
        }}
      />
      <span className="quiet" role="status">
        {[said, reading && "reading older…"].filter(Boolean).join(" · ")}
      </span>
      <button className="plain-button" aria-label="Older" disabled={count === 0} onClick={() => onStep(-1)}>
        <Icon name="up" size={16} />
      </button>
      <button className="plain-button" aria-label="Newer" disabled={count === 0} onClick={() => onStep(1)}>
        <Icon name="down" size={16} />
      </button>
      <button className="plain-button" aria-label="Close" onClick={onClose}>
        <Icon name="close" size={16} />
      </button>
    </div>
  );
}
