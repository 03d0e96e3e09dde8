import type { Problem } from "../client/http";
import { AboutError } from "./AboutError";

/** A failure: what happened, what to do, and a button that does it. */
export function Notice({ problem, action }: { problem: Problem; action?: { label: string; run: () => void } }) {
  return (
    <section className="notice" role="alert">
      <p>
        <strong>{problem.message}</strong>
      </p>
      {problem.hint && <p>{problem.hint}</p>}
      {problem.error_id && <p className="quiet">Error {problem.error_id}</p>}
      <AboutError code={problem.code} />
      {action && (
        <button type="button" onClick={action.run}>
          {action.label}
        </button>
      )}
    </section>
  );
}
