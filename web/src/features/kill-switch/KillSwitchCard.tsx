import { useEffect, useRef, useState } from "react";
import { ConfirmButton } from "../../ui/ConfirmButton";
import { formatAge, formatDateTime, secondsOf } from "../../ui/format";
import { Notice } from "../../ui/Notice";
import { useNow } from "../../ui/useNow";
import { useKillSwitch } from "./KillSwitchProvider";
import "./kill-switch.css";

interface KillSwitchCardProps {
  /** A first press was made elsewhere, such as in the command palette. */
  pressed: boolean;
  onPressSeen: () => void;
}

/** The kill switch. Two presses stop all agents, one press lets them work again. */
export function KillSwitchCard({ pressed, onPressSeen }: KillSwitchCardProps) {
  const { value, problem, reload, stopped, stopAll, resume } = useKillSwitch();
  const [presses, setPresses] = useState(0);
  const now = useNow();
  const latest = useRef(onPressSeen);
  useEffect(() => {
    latest.current = onPressSeen;
  });
  useEffect(() => {
    if (!pressed) return;
    setPresses((count) => count + 1);
    latest.current();
  }, [pressed]);
  if (problem && value === null) return <Notice problem={problem} action={{ label: "Try again", run: reload }} />;
  if (value !== null && stopped) {
    const at = value.at === null ? null : secondsOf(value.at);
    return (
      <section className="card kill-switch" data-stopped="true" aria-label="Kill switch">
        <p role="status">
          <strong>All agents are stopped.</strong>
          {at !== null && (
            <>
              {" "}
              Stopped <time title={formatDateTime(at)}>{formatAge(at, now)}</time>
              {value.who && ` by ${value.who}`}.
            </>
          )}
          {value.why && ` Reason: ${value.why}`}
        </p>
        {value.summary !== null && <p className="quiet">{value.summary}</p>}
        <button type="button" className="primary" onClick={() => void resume()}>
          Let agents work again
        </button>
      </section>
    );
  }
  return (
    <section className="card kill-switch" aria-label="Kill switch">
      <ConfirmButton
        className="kill-switch-button"
        label="Stop all agents"
        confirmLabel="Press again to stop"
        remotePresses={presses}
        disabled={value === null}
        onConfirm={() => {
          setPresses(0);
          void stopAll("");
        }}
      />
      <p className="quiet">
        Ends every agent with all that it started, closes network connections and blocks model requests until you let
        agents work again. Your own terminals and services, files, history and undo still work.
      </p>
    </section>
  );
}
