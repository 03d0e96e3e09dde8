import { useMemo } from "react";
import type { SessionEvent } from "../../../client/api";
import { Plan } from "./Plan";
import { transcriptItems } from "./transcript.logic";

/** The newest plan of a session, for the pane beside it. */
export default function PlanPanel({ events }: { events: readonly SessionEvent[] }) {
  const newest = events.findLast((event) => event.kind === "plan");
  const item = useMemo(
    () => (newest === undefined ? undefined : transcriptItems([newest]).find((one) => one.kind === "plan")),
    [newest],
  );
  return (
    <div className="conversation-plan-panel">
      {item === undefined ? (
        <p className="empty">The agent has made no plan in this session. Agents make one for longer tasks.</p>
      ) : (
        <Plan item={item} />
      )}
    </div>
  );
}
