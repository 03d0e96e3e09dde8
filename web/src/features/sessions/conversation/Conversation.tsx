import { useState } from "react";
import type { SessionView } from "../../../client/api";
import { later } from "../../../ui/later";
import { unhidden } from "../../../ui/unhidden";
import { ApprovalDock } from "../../approvals/ApprovalDock";
import { Composer } from "../composer/Composer";
import { SessionHead } from "../SessionHead";
import "./conversation.css";
import { useSessionEvents } from "./events";

// Reading Markdown is most of the page's weight: the rest of the page does not wait for it.
const Transcript = later(async () => ({ default: (await import("./Transcript")).Transcript }));
Transcript.load();

/** One session: what was said and done, what its agent asks, and the place to say more. */
export function Conversation({ id, session, onClose }: { id: string; session: SessionView | null; onClose: () => void }) {
  const heard = useSessionEvents(id);
  const [sent, setSent] = useState(0);
  return (
    <section className="file conversation" aria-label={unhidden(session?.title ?? "") || "Session"}>
      <SessionHead session={session} onClose={onClose} />
      <div className="talk-place">
        <Transcript session={id} heard={heard} works={session?.status === "working" ? session.seq : null} sent={sent} />
      </div>
      <ApprovalDock session={id} />
      <Composer id={id} session={session} events={heard.events} onSent={() => setSent((count) => count + 1)} />
    </section>
  );
}
