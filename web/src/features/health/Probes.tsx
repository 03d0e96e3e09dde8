import type { HealthReport } from "../../client/api";
import { useResource } from "../../data/resource";
import { formatAge, formatDateTime, secondsOf } from "../../ui/format";
import { Notice } from "../../ui/Notice";
import { useNow } from "../../ui/useNow";
import { errorText, sortComponents, summary } from "./health.logic";
import "./health.css";
import { wordOf } from "../../ui/words";

const POLL_INTERVAL = 15_000;

/** The result of the last probe of every component. */
export function Probes() {
  const { value, problem } = useResource<HealthReport>("/health", { topic: "health", pollInterval: POLL_INTERVAL });
  const now = useNow();
  const components = sortComponents(value?.components ?? []);
  const off = components.filter((component) => component.state === "off");
  return (
    <section aria-labelledby="health">
      <h3 id="health" className={problem ? "stale" : ""}>
        Components: {value ? summary(value) : "loading…"}
      </h3>
      {problem && <Notice problem={problem} />}
      {value && (
        <ul className="health-components">
          {components
            .filter((component) => component.state !== "off")
            .map((component) => {
              const since = secondsOf(component.since);
              return (
                <li key={component.name} data-state={component.state}>
                  <span className="health-name">{component.name}</span>
                  <span className="health-state">{wordOf(component.state)}</span>
                  <time dateTime={component.since} title={formatDateTime(since)}>
                    since {formatAge(since, now)}
                  </time>
                  {component.last_error && <p>{errorText(component)}</p>}
                </li>
              );
            })}
        </ul>
      )}
      {off.length > 0 && (
        <p className="quiet health-off">Switched off: {off.map((component) => component.name).join(", ")}</p>
      )}
    </section>
  );
}
