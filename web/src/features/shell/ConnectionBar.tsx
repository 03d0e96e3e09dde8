import { useEffect, useState } from "react";
import { useConnection } from "./live";
import { RecoveryWay } from "./RecoveryWay";

const OFFER_RECOVERY_AFTER = 5_000;
const SAY_SO_AFTER = 800;

/** Says when the gateway is away. Nothing that was typed is touched: the page below stays as it is. */
export function ConnectionBar({ recovery }: { recovery: string }) {
  const state = useConnection();
  const [away, setAway] = useState<"no" | "moment" | "long">("no");
  useEffect(() => {
    if (state === "live") {
      setAway("no");
      return;
    }
    const soon = setTimeout(() => setAway("moment"), SAY_SO_AFTER);
    const later = setTimeout(() => setAway("long"), OFFER_RECOVERY_AFTER);
    return () => {
      clearTimeout(soon);
      clearTimeout(later);
    };
  }, [state]);
  if (away === "no") return null;
  return (
    <div className="bar" data-tone={away === "long" ? "alarm" : "amber"} role="status">
      <span className="spinner" aria-hidden="true" />
      {away === "moment" ? (
        <p>Reconnecting…</p>
      ) : (
        <p>
          <strong>Freehold does not answer.</strong> The keeper is restarting it, and this page goes on by itself. What you typed is
          kept. <RecoveryWay recovery={recovery} />
        </p>
      )}
    </div>
  );
}
