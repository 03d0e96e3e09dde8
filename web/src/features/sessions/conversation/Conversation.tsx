import { useMemo } from "react";
import type { SessionInfo } from "../../../client/api";
import { lazyComponent } from "../../../ui/lazyComponent";
import { WorkbenchFrame } from "../../workbench/WorkbenchFrame";
import { ConversationBody } from "./ConversationBody";
import { lastChangesPath } from "./lastChanges.logic";
import { useSessionEvents } from "./useSessionEvents";

const OtherSession = lazyComponent(() => import("./OtherSession"));
const PlanPanel = lazyComponent(() => import("./PlanPanel"));

interface ConversationProps {
  id: string;
  session: SessionInfo | null;
  onClose: () => void;
}

/**
 * One session: its transcript, its open permission requests and the composer, and the pane beside them. The pane stays
 * when another session is opened.
 */
export function Conversation({ id, session, onClose }: ConversationProps) {
  const loaded = useSessionEvents(id);
  const changes = useMemo(() => lastChangesPath(loaded.events), [loaded.events]);
  return (
    <WorkbenchFrame
      session={id}
      folder={session?.folder ?? ""}
      changes={changes}
      plan={<PlanPanel events={loaded.events} />}
      other={<OtherSession current={id} />}
    >
      <ConversationBody key={id} id={id} session={session} loaded={loaded} onClose={onClose} />
    </WorkbenchFrame>
  );
}
