import { useEffect, useState } from "react";
import { useConnection } from "../data/connection";
import { RecoveryHint } from "./RecoveryHint";

const SHORT_BREAK = 800;
const LONG_BREAK = 5_000;

/** Shows that the gateway does not answer. The page below stays as it is, with everything that was typed. */
export function ConnectionBar({ recovery }: { recovery: string }) {
  const state = useConnection();
  const [outage, setOutage] = useState<"none" | "short" | "long">("none");
  useEffect(() => {
    if (state === "live") {
      setOutage("none");
      return;
    }
    const short = setTimeout(() => setOutage("short"), SHORT_BREAK);
    const long = setTimeout(() => setOutage("long"), LONG_BREAK);
    return () => {
      clearTimeout(short);
      clearTimeout(long);
    };
  }, [state]);
  if (outage === "none") return null;
  return (
    <div className="bar" data-tone={outage === "long" ? "alarm" : "amber"} role="status">
      <span className="spinner" aria-hidden="true" />
      {outage === "short" ? (
        <p>Reconnecting…</p>
      ) : (
        <p>
          <strong>Freehold does not answer.</strong> The keeper is restarting it. This page reconnects when it is back,
          and keeps what you typed. <RecoveryHint recovery={recovery} />
        </p>
      )}
    </div>
  );
}
