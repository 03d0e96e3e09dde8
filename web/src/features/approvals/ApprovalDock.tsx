import { useEffect, useRef, useState } from "react";
import { useApprovals } from "./approvals";
import { keysOf } from "./approvals.logic";
import { AskCard } from "./AskCard";

/** What the agent of this session asks, right above the place to write. */
export function ApprovalDock({ session }: { session: string }) {
  const { asks, answer } = useApprovals();
  const mine = asks.filter((ask) => ask.session === session);
  const [at, setAt] = useState(0);
  const index = Math.min(at, Math.max(0, mine.length - 1));
  const ask = mine[index];
  const dock = useRef<HTMLDivElement>(null);
  const held = useRef(false);
  useEffect(() => {
    // Whoever answers by keys goes on where they are: at the next question, or back to writing.
    if (!held.current) return;
    held.current = false;
    const next = dock.current?.querySelector<HTMLElement>("[role=alertdialog]");
    // On a phone the keyboard would come up.
    const field = matchMedia("(hover: hover)").matches ? document.querySelector<HTMLElement>(".composer textarea") : null;
    (next ?? field)?.focus();
  }, [ask?.id]);
  return (
    <div ref={dock} className="ask-dock">
      {ask !== undefined && (
        <AskCard
          key={ask.id}
          ask={ask}
          keys={keysOf("dock", true)}
          stack={{ index, count: mine.length, step: (by) => setAt((index + by + mine.length) % mine.length) }}
          onAnswer={(choice) => {
            held.current = dock.current?.contains(document.activeElement) ?? false;
            return answer(ask, choice);
          }}
        />
      )}
    </div>
  );
}
