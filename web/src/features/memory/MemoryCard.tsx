import { useState } from "react";
import type { Memory } from "../../client/api";
import { LANGUAGE } from "../../language/translation";
import { ConfirmButton } from "../../ui/ConfirmButton";
import { formatDateTime, shorten } from "../../ui/format";
import { go, sessionPath } from "../../ui/route";
import { visibleText } from "../../ui/visibleText";
import { isQuoted, isUntrusted, namespaceText, originText, usageText } from "./memory.logic";

/** How many characters of a memory are shown at first. */
const MAX_SHOWN = 500;

interface MemoryCardProps {
  memory: Memory;
  busy: boolean;
  onEdit: (memory: Memory) => void;
  onPin: (memory: Memory) => void;
  onForget: (memory: Memory) => void;
}

/** One memory: what it says, where it is from, when it was used, and what can be done with it. */
export function MemoryCard({ memory, busy, onEdit, onPin, onForget }: MemoryCardProps) {
  const about = visibleText(shorten(memory.text, 60));
  const [isWhole, setIsWhole] = useState(false);
  const isLong = memory.text.length > MAX_SHOWN && !isWhole;
  const session = memory.origin.session;
  return (
    <li className="card">
      <p className={`memory-text${isQuoted(memory) ? " memory-quoted" : ""}`} dir="auto">
        {visibleText(isLong ? shorten(memory.text, MAX_SHOWN) : memory.text)}
      </p>
      {isLong && (
        <button
          type="button"
          className="text-button"
          aria-label={`Show all of: ${about}`}
          onClick={() => setIsWhole(true)}
        >
          Show all {memory.text.length.toLocaleString(LANGUAGE)} characters
        </button>
      )}
      <p className="quiet memory-facts">
        {memory.pinned && (
          <span className="chip" data-tone="leaf">
            pinned
          </span>
        )}
        <span>{namespaceText(memory.namespace)}</span>
        {isUntrusted(memory) ? (
          <span className="chip" data-tone="amber">
            {originText(memory)}
          </span>
        ) : (
          <span>{originText(memory)}</span>
        )}
        {memory.origin.note !== null && <span className="memory-origin">{visibleText(memory.origin.note)}</span>}
        <time dateTime={memory.updated}>{formatDateTime(Date.parse(memory.updated) / 1000)}</time>
        <span>{usageText(memory)}</span>
        {memory.expires !== null && <span>forgotten {formatDateTime(Date.parse(memory.expires) / 1000)}</span>}
      </p>
      <div className="memory-actions">
        <button
          type="button"
          className="small"
          disabled={busy}
          aria-label={`Correct: ${about}`}
          onClick={() => onEdit(memory)}
        >
          Correct
        </button>
        <button
          type="button"
          className="small"
          disabled={busy}
          aria-label={`${memory.pinned ? "Unpin" : "Pin"}: ${about}`}
          onClick={() => onPin(memory)}
        >
          {memory.pinned ? "Unpin" : "Pin"}
        </button>
        {session !== null && (
          <button
            type="button"
            className="small"
            aria-label={`Open session: ${about}`}
            onClick={() => go(sessionPath(session))}
          >
            Open session
          </button>
        )}
        <ConfirmButton
          label="Forget"
          confirmLabel="Forget?"
          spoken={`Forget: ${about}`}
          disabled={busy}
          onConfirm={() => onForget(memory)}
        />
      </div>
    </li>
  );
}
