import { countOf } from "../../ui/format";
import { go } from "../../ui/route";
import { useEgress } from "../network/EgressProvider";
import { MODES } from "../network/egress.logic";
import { Probes } from "./Probes";
import { Programs } from "./Programs";

export function HealthSection() {
  return (
    <div className="health-sections">
      <Programs />
      <NetworkSummary />
      <Probes />
    </div>
  );
}

/** The state of egress in a sentence. It has a page of its own. */
function NetworkSummary() {
  const { state } = useEgress();
  if (state === null) return null;
  const waiting = state.pending.length;
  const { title, effect } = MODES[state.mode];
  return (
    <section aria-labelledby="network">
      <h3 id="network">Network</h3>
      <div className="card health-network">
        <p>
          <strong>{title}.</strong> {effect}{" "}
          <span className="quiet">
            {countOf(state.rules.length, "rule")}.{" "}
            {waiting === 0
              ? "No network request needs an answer."
              : `${countOf(waiting, "network request")} ${waiting === 1 ? "needs" : "need"} an answer.`}
          </span>
        </p>
        <button type="button" className="small" onClick={() => go("/network")}>
          Open Network
        </button>
      </div>
    </section>
  );
}
