import { useKillSwitch } from "./KillSwitchProvider";

/** On every page while all agents are stopped: the reason, and the button that lets them work again. */
export function KillSwitchBar() {
  const { value, stopped, resume } = useKillSwitch();
  if (!stopped) return null;
  return (
    <div className="bar" data-tone="alarm" role="status">
      <p>
        <strong>All agents are stopped.</strong> No model request is sent{value?.why ? `. Reason: ${value.why}` : "."}
      </p>
      <button type="button" className="small" onClick={() => void resume()}>
        Let agents work again
      </button>
    </div>
  );
}
