import { stepsToShow } from "./history.logic";

const MOST_STEPS = 200;

/** Every path's fate, as a plan has it. */
export function Steps({ steps: planned, total }: { steps: readonly Record<string, string>[]; total: number }) {
  const steps = stepsToShow(planned);
  // The list may be cut short; its total is not.
  const count = planned.length === total ? steps.length : total;
  return (
    <>
      <p className="quiet">
        {steps.length === 0 ? "No file would change." : `${steps.length === 1 ? "One path changes" : `${count} paths change`}. The present state is kept as well: this can be undone.`}
      </p>
      <ul className="steps">
        {steps.slice(0, MOST_STEPS).map((step) => (
          <li key={step.path}>
            <span className="chip" data-tone={step.fate === "remove" ? "alarm" : "leaf"}>
              {step.words}
            </span>
            <code className="path">{step.path}</code>
            {step.detail && <span className="quiet">{step.detail}</span>}
          </li>
        ))}
      </ul>
      {steps.length > MOST_STEPS && <p className="quiet">and {steps.length - MOST_STEPS} more</p>}
    </>
  );
}
