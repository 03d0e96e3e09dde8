import { useEgress } from "../network/egress";
import { MODES } from "../network/egress.logic";
import { go } from "../shell/route";
import { HealthPart } from "./HealthPart";
import { Programs } from "./Programs";

export function HealthSection() {
  return (
    <>
      <Programs />
      <HealthPart />
      <WayOut />
    </>
  );
}

/** Egress has a page of its own; here is only how it stands. */
function WayOut() {
  const { state } = useEgress();
  if (state === null) return null;
  const waiting = state.pending.length;
  return (
    <section aria-labelledby="way-out">
      <h3 id="way-out">The way out</h3>
      <div className="card way-out">
        <p>
          <strong>{MODES[state.mode].title}.</strong> {MODES[state.mode].means}{" "}
          <span className="quiet">
            {state.rules.length === 1 ? "One rule" : `${state.rules.length} rules`},{" "}
            {waiting === 0 ? "nothing waits for an answer" : waiting === 1 ? "one question waits" : `${waiting} questions wait`}.
          </span>
        </p>
        <button className="small" onClick={() => go("/network")}>
          Open Network
        </button>
      </div>
    </section>
  );
}
