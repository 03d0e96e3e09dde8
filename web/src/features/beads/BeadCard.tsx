import type { Bead } from "../../client/api";
import { go, sessionPath } from "../../ui/route";
import { visibleText } from "../../ui/visibleText";
import { actionsOf, type BoardAction, holderText, isSessionHere } from "./board.logic";

const LABELS: Record<BoardAction, string> = {
  work: "Start an agent",
  claim: "Take it",
  release: "Release",
  close: "Close",
  reopen: "Reopen",
};

interface BeadCardProps {
  bead: Bead;
  /** The title of the item that this one is part of. */
  parent: string | null;
  busy: boolean;
  onOpen: (bead: Bead) => void;
  onDrag: (bead: Bead | null) => void;
  onAct: (bead: Bead, action: BoardAction) => void;
}

/** One item. It can be dragged to another column, and every move is a button as well. */
export function BeadCard({ bead, parent, busy, onOpen, onDrag, onAct }: BeadCardProps) {
  const session = bead.sessions.filter(isSessionHere).at(-1);
  return (
    <li className="card beads-card" draggable onDragStart={() => onDrag(bead)} onDragEnd={() => onDrag(null)}>
      <button
        type="button"
        className="text-button beads-title"
        dir="auto"
        data-bead={bead.id}
        onClick={() => onOpen(bead)}
      >
        {visibleText(bead.title)}
      </button>
      <p className="quiet beads-facts">
        <span>{bead.id}</span>
        <span>priority {bead.priority}</span>
        {bead.kind !== "task" && <span>{bead.kind}</span>}
        {parent !== null && (
          <span>
            part of <bdi>{visibleText(parent)}</bdi>
          </span>
        )}
        {bead.blocked && (
          <span className="chip" data-tone="amber">
            blocked
          </span>
        )}
        {bead.holder !== null && <span>held by {holderText(bead.holder)}</span>}
        {bead.labels.map((label) => (
          <span key={label} className="chip beads-label">
            {visibleText(label)}
          </span>
        ))}
      </p>
      {bead.close_reason !== null && <p className="quiet beads-reason">{visibleText(bead.close_reason)}</p>}
      <div className="beads-actions">
        {session !== undefined && (
          <button
            type="button"
            className="small"
            aria-label={`Open session: ${visibleText(bead.title)}`}
            onClick={() => go(sessionPath(session))}
          >
            Open session
          </button>
        )}
        {actionsOf(bead).map((action) => (
          <button
            key={action}
            type="button"
            className="small"
            disabled={busy}
            aria-label={`${LABELS[action]}: ${visibleText(bead.title)}`}
            onClick={() => onAct(bead, action)}
          >
            {LABELS[action]}
          </button>
        ))}
      </div>
    </li>
  );
}
