import { useEffect, useRef, useState } from "react";
import { useApprovals } from "./ApprovalsProvider";
import { keyModeOf } from "./answerKeys.logic";
import { PermissionCard } from "./PermissionCard";

/** The open permission requests of one session, directly above its composer. */
export function ApprovalDock({ session }: { session: string }) {
  const approvals = useApprovals();
  const requests = approvals.requests.filter((one) => one.session === session);
  const [chosen, setChosen] = useState(0);
  const index = Math.min(chosen, Math.max(0, requests.length - 1));
  const current = requests[index];
  const dock = useRef<HTMLDivElement>(null);
  const hadFocus = useRef(false);
  const currentId = current?.id;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the focus moves when another request is shown
  useEffect(() => {
    // After an answer by keyboard the focus goes to the next request, or back to the composer.
    if (!hadFocus.current) return;
    hadFocus.current = false;
    const nextCard = dock.current?.querySelector<HTMLElement>("[role=alertdialog]");
    // On a phone this would open the keyboard.
    const hasKeyboard = matchMedia("(hover: hover)").matches;
    const around = dock.current?.parentElement ?? document;
    const field = hasKeyboard ? around.querySelector<HTMLElement>(".composer textarea") : null;
    (nextCard ?? field)?.focus();
  }, [currentId]);
  return (
    <div ref={dock} className="approvals-dock">
      {current !== undefined && (
        <PermissionCard
          key={current.id}
          request={current}
          keyMode={keyModeOf("dock", true)}
          stack={{
            index,
            count: requests.length,
            step: (by) => setChosen((index + by + requests.length) % requests.length),
          }}
          onAnswer={(choice) => {
            hadFocus.current = dock.current?.contains(document.activeElement) ?? false;
            return approvals.answer(current, choice);
          }}
        />
      )}
    </div>
  );
}
