import { useEffect, useState } from "react";
import { request, RequestFailed, type Problem } from "../../client/http";
import { Notice } from "../../ui/Notice";
import { inOrderOfConcern, summary, troubleOf, type Health } from "./health.logic";

const EVERY = 5_000;

export function HealthPage({ onSignedOut }: { onSignedOut: () => void }) {
  const [health, setHealth] = useState<Health | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);

  useEffect(() => {
    let timer = 0;
    let current = true;
    async function look() {
      try {
        const seen = await request<Health>("/health");
        if (!current) return;
        setHealth(seen);
        setProblem(null);
      } catch (error) {
        if (!current) return;
        if (error instanceof RequestFailed && error.status === 401) return onSignedOut();
        if (error instanceof RequestFailed) setProblem(error.problem);
      }
      timer = window.setTimeout(() => void look(), EVERY);
    }
    void look();
    return () => {
      current = false;
      window.clearTimeout(timer);
    };
  }, [onSignedOut]);

  async function signOut() {
    try {
      await request("/v1/sign-out", { method: "POST", body: {} });
      onSignedOut();
    } catch (error) {
      if (error instanceof RequestFailed) setProblem(error.problem);
    }
  }

  return (
    <div className="page">
      <header>
        <img src="/icon.svg" alt="" width="28" height="28" />
        <h1>Freehold</h1>
        <button onClick={() => void signOut()}>Sign out</button>
      </header>
      <main>
        {problem && <Notice problem={problem} />}
        <h2 className={problem ? "stale" : ""}>{health ? summary(health) : "Looking…"}</h2>
        {health && (
          <ul className="components">
            {inOrderOfConcern(health.components).map((component) => (
              <li key={component.name} data-state={component.state}>
                <span className="name">{component.name}</span>
                <span className="state">{component.state}</span>
                <time dateTime={component.since}>since {new Date(component.since).toLocaleString()}</time>
                {component.last_error && <p>{troubleOf(component)}</p>}
              </li>
            ))}
          </ul>
        )}
      </main>
    </div>
  );
}
