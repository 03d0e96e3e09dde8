import { countOf } from "../../ui/format";
import { shownSteps } from "./history.logic";

const MAX_STEPS = 200;

/** What a plan does to every path. */
export function PlannedSteps({ steps: planned, total }: { steps: readonly Record<string, string>[]; total: number }) {
  const steps = shownSteps(planned);
  // The list may be cut. The total is not.
  const count = planned.length === total ? steps.length : total;
  return (
    <>
      <p className="quiet">
        {steps.length === 0 ? "No file will change." : `${countOf(count, "file")} will change. You can undo this.`}
      </p>
      {/* A long list scrolls, also by keyboard. */}
      <ul className="steps" aria-label="Files that will change" tabIndex={steps.length > 0 ? 0 : undefined}>
        {steps.slice(0, MAX_STEPS).map((step) => (
          <li key={step.path}>
            <span className="chip" data-tone={step.fate === "remove" ? "alarm" : "leaf"}>
              {step.text}
            </span>
            <code className="path">{step.path}</code>
            {step.detail && <span className="quiet">{step.detail}</span>}
          </li>
        ))}
      </ul>
      {steps.length > MAX_STEPS && <p className="quiet">and {steps.length - MAX_STEPS} more</p>}
    </>
  );
}
