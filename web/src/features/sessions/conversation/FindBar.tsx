import { useEffect, useRef } from "react";
import { Icon } from "../../../ui/Icon";
import type { Find } from "./useFind";

interface FindBarProps {
  find: Find;
  /** Whether older messages are still being loaded. */
  loading: boolean;
  onClose: () => void;
}

/** Searches the whole session. The search of the browser finds only what is drawn. */
export function FindBar({ find, loading, onClose }: FindBarProps) {
  const { query, position, count, search, step } = find;
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const result = query.trim() === "" ? "" : count === 0 ? (loading ? "" : "Nothing found") : `${position} of ${count}`;
  return (
    <div className="conversation-find" role="search" aria-label="In this session">
      <input
        ref={field}
        type="search"
        aria-label="Find in this session"
        placeholder="Find in this session"
        value={query}
        onChange={(event) => search(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") step(event.shiftKey ? 1 : -1);
          else if (event.key === "Escape") onClose();
          else return;
          event.preventDefault();
          event.stopPropagation();
        }}
      />
      <span className="quiet" role="status">
        {[result, loading && "searching older messages…"].filter(Boolean).join(" · ")}
      </span>
      <button
        type="button"
        className="plain-button"
        aria-label="Older match"
        disabled={count === 0}
        onClick={() => step(-1)}
      >
        <Icon name="up" size={16} />
      </button>
      <button
        type="button"
        className="plain-button"
        aria-label="Newer match"
        disabled={count === 0}
        onClick={() => step(1)}
      >
        <Icon name="down" size={16} />
      </button>
      <button type="button" className="plain-button" aria-label="Close search" onClick={onClose}>
        <Icon name="close" size={16} />
      </button>
    </div>
  );
}
