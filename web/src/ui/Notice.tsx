import type { Problem } from "../client/http";

/** Codes of Freehold have a place in the documentation. What the page found out itself has none. */
const HAS_PAGE = /^(?!page\.|gateway\.un)[a-z-]+\.[a-z.-]+$/;

/** A failure: what happened, what to do, and a button that does it. */
export function Notice({ problem, action }: { problem: Problem; action?: { label: string; run: () => void } }) {
  return (
    <section className="notice" role="alert">
      <p>
        <strong>{problem.message}</strong>
      </p>
      {problem.hint && <p>{problem.hint}</p>}
      {problem.error_id && <p className="quiet">Error {problem.error_id}</p>}
      {HAS_PAGE.test(problem.code) && (
        <p>
          <a href={`/docs/errors.html#${problem.code}`} target="_blank" rel="noopener">
            About this error
          </a>
        </p>
      )}
      {action && (
        <button type="button" onClick={action.run}>
          {action.label}
        </button>
      )}
    </section>
  );
}
