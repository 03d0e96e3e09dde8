import { useState } from "react";
import { Icon } from "../../../ui/Icon";
import { shortLine } from "../../../ui/plainText.logic";
import { visibleText } from "../../../ui/visibleText";
import type { Item } from "./transcript.logic";

const MAX_STEPS = 100;
const STEP_WORDS: Record<string, string> = { completed: "done", in_progress: "in progress", pending: "to do" };

/** The steps that an agent has planned, with their states. */
export function Plan({ item }: { item: Extract<Item, { kind: "plan" }> }) {
  const [showAll, setShowAll] = useState(false);
  const done = item.entries.filter((entry) => entry.status === "completed").length;
  const steps = showAll ? item.entries : item.entries.slice(0, MAX_STEPS);
  return (
    <section role="group" className="conversation-plan" aria-label="Plan">
      <p className="conversation-plan-head">
        <Icon name="plan" size={16} /> <strong>Plan</strong>
        <span className="quiet">
          {done} of {item.entries.length} done
        </span>
      </p>
      <ol>
        {steps.map((entry, index) => (
          <li key={index} data-status={entry.status}>
            <span className="conversation-plan-mark" role="img" aria-label={STEP_WORDS[entry.status] ?? entry.status}>
              {entry.status === "completed" && <Icon name="check" size={12} />}
            </span>
            <span>{visibleText(shortLine(entry.content))}</span>
          </li>
        ))}
      </ol>
      {steps.length < item.entries.length && (
        <button type="button" className="text-button" onClick={() => setShowAll(true)}>
          Show all {item.entries.length} steps
        </button>
      )}
    </section>
  );
}
