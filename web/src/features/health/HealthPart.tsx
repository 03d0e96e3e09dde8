import { useEffect } from "react";
import { useAnswer, useNow } from "../../ui/answers";
import { ago, fullMoment } from "../../ui/moments";
import { Notice } from "../../ui/Notice";
import { useTopic } from "../shell/live";
import { inOrderOfConcern, summary, troubleOf, type Health } from "./health.logic";

const EVERY = 15_000;

/** How every component of the house last answered. */
export function HealthPart() {
  const { value: health, problem, reload } = useAnswer<Health>("/health");
  const now = useNow();
  useTopic("health", { event: reload, resync: reload });
  useEffect(() => {
    const timer = setInterval(reload, EVERY);
    return () => clearInterval(timer);
  }, [reload]);

  const off = health?.components.filter((component) => component.state === "off").map((component) => component.name) ?? [];
  return (
    <section aria-labelledby="health">
      <h3 id="health" className={problem ? "stale" : ""}>
        Probes: {health ? summary(health) : "looking…"}
      </h3>
      {problem && <Notice problem={problem} />}
      {health && (
        <ul className="components">
          {inOrderOfConcern(health.components)
            .filter((component) => component.state !== "off")
            .map((component) => (
              <li key={component.name} data-state={component.state}>
                <span className="name">{component.name}</span>
                <span className="state">{component.state}</span>
                <time dateTime={component.since} title={fullMoment(new Date(component.since).getTime() / 1000)}>
                  since {ago(new Date(component.since).getTime() / 1000, now)}
                </time>
                {component.last_error && <p>{troubleOf(component)}</p>}
              </li>
            ))}
        </ul>
      )}
      {off.length > 0 && <p className="quiet switched-off">Switched off: {off.join(", ")}</p>}
    </section>
  );
}
