import type { SessionEvent } from "../../client/api";
import { request } from "../../client/http";
import { useToasts } from "../../ui/Toasts";
import { unhidden } from "../../ui/unhidden";
import { pendingApprovals } from "./approvals.logic";

const ANSWERS = { once: "Once", session: "This session", always: "Always", reject: "No" } as const;

/** What the agent of this session asks, right above the place to write. */
export function ApprovalDock({ events }: { events: readonly SessionEvent[] }) {
  const toasts = useToasts();
  return pendingApprovals(events).map((item) => (
    <section key={item.id} className="bar approval" data-tone="amber" role="alertdialog" aria-label="The agent asks">
      <p>
        The agent asks: <strong>{unhidden(item.title)}</strong>
      </p>
      {item.details
        .filter(([, value]) => value !== item.title)
        .map(([name, value]) => (
          <pre key={name} aria-label={name}>
            {unhidden(value)}
          </pre>
        ))}
      <div className="replies">
        {(["once", "session", "always", "reject"] as const).map((answer) => (
          <button
            key={answer}
            className="small"
            onClick={() => void request(`/v1/approvals/${encodeURIComponent(item.id)}`, { method: "POST", body: { answer } }).catch(toasts.failed)}
          >
            {ANSWERS[answer]}
          </button>
        ))}
      </div>
    </section>
  ));
}
