import type { ReactNode } from "react";
import type { Problem } from "../../client/http";
import { Notice } from "../../ui/Notice";
import { SLOTS, type SlotName, slotFacts } from "./slots.logic";
import { useSlots } from "./useSlots";
import "./slots.css";

interface SlotPageProps {
  slot: SlotName;
  className: string;
  problem: Problem | null;
  /** Whether there is something to show. Without it, a problem is shown alone. */
  loaded: boolean;
  onRetry: () => void;
  children: ReactNode;
}

/** The page of a slot: its name, where it is kept, what is wrong with it, and how to turn it on when it is off. */
export function SlotPage({ slot, className, problem, loaded, onRetry, children }: SlotPageProps) {
  const slots = useSlots();
  const words = SLOTS.find((one) => one.name === slot);
  const state = slots.value?.find((one) => one.name === slot);
  const isOff = problem?.code === `${slot}.disabled`;
  return (
    <div className={`column ${className}`}>
      <header className="slots-head">
        <div className="head">
          <h1>{words?.title}</h1>
          <p className="quiet">{words?.about}</p>
        </div>
        {state && !isOff && <p className="quiet slots-facts">{slotFacts(state)}</p>}
      </header>
      {isOff && (
        <p className="empty">
          {words?.off} To turn this on, set <code>slots.{slot} = "local"</code> in freehold.toml and restart Freehold.
        </p>
      )}
      {problem && !isOff && <Notice problem={problem} action={{ label: "Try again", run: onRetry }} />}
      {(problem === null || (loaded && !isOff)) && children}
    </div>
  );
}
