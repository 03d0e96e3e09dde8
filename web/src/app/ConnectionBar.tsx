import { useEffect, useState } from "react";
import { useConnection, useUnansweredPing } from "../data/connection";
import { type Outage, outageOf } from "./connection.logic";
import { RecoveryHint } from "./RecoveryHint";
import { isThisMachine } from "./recovery.logic";

const LOOK_INTERVAL = 400;

/** Shows that the gateway does not answer, and why. The page below stays as it is, with everything that was typed. */
export function ConnectionBar({ recovery }: { recovery: string }) {
  const outage = useOutage();
  if (outage === "none") return null;
  return (
    <div className="bar" data-tone={outage === "short" || outage === "silent" ? "amber" : "alarm"} role="status">
      <span className="spinner" aria-hidden="true" />
      {outage === "offline" && (
        <p>
          <strong>You are offline.</strong> This page goes on when the connection is back, and keeps what you typed.
        </p>
      )}
      {outage === "silent" && <p>Freehold has not answered for some seconds…</p>}
      {outage === "short" && <p>Reconnecting…</p>}
      {outage === "long" && (
        <p>
          <strong>Freehold does not answer.</strong> The keeper is restarting it. This page reconnects when it is back,
          and keeps what you typed. <RecoveryHint recovery={recovery} />
        </p>
      )}
    </div>
  );
}

function useOutage(): Outage {
  const state = useConnection();
  const unansweredFor = useUnansweredPing();
  const [outage, setOutage] = useState<Outage>("none");
  useEffect(() => {
    const begin = Date.now();
    const look = () =>
      setOutage(
        outageOf(state, {
          isOnline: navigator.onLine,
          isOnThisMachine: isThisMachine(location.hostname),
          brokenFor: Date.now() - begin,
          unansweredFor: unansweredFor(),
        }),
      );
    look();
    const timer = setInterval(look, LOOK_INTERVAL);
    window.addEventListener("offline", look);
    window.addEventListener("online", look);
    return () => {
      clearInterval(timer);
      window.removeEventListener("offline", look);
      window.removeEventListener("online", look);
    };
  }, [state, unansweredFor]);
  return outage;
}
