import type { SessionInfo } from "../../../client/api";
import type { statusLabel } from "../../session-list/sessionList.logic";

interface StatusChipProps {
  session: SessionInfo;
  label: ReturnType<typeof statusLabel>;
}

export function StatusChip({ session, label }: StatusChipProps) {
  if (label === null) return null;
  return (
    <span className="chip" data-tone={label.tone}>
      {session.status === "working" && <span className="spinner" aria-hidden="true" />}
      {label.text}
    </span>
  );
}
