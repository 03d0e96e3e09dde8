import { go } from "../../../ui/route";
import { useSlots } from "../../slots/useSlots";

/** Says that no new work is accepted because the orchestrator is lost. Draws nothing otherwise. */
export function OrchestratorNotice() {
  const lost = useSlots().value?.find((one) => one.name === "orchestrator" && one.state === "unavailable");
  if (lost === undefined) return null;
  return (
    <div className="composer-note" data-tone="amber" role="status">
      <p>The orchestrator cannot be reached, so no new work is accepted. Freehold tries again by itself.</p>
      <button type="button" className="text-button" onClick={() => go("/settings/slots")}>
        Open slots
      </button>
    </div>
  );
}
