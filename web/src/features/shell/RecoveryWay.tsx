import { wayToRecovery } from "./recovery.logic";

/** The way to undo without the gateway, from where this page was opened. */
export function RecoveryWay({ recovery }: { recovery: string }) {
  const way = wayToRecovery(recovery, location.hostname);
  if (way.how === "link") {
    return (
      <>
        <a href={way.href}>Open the recovery page</a> to undo without it.
      </>
    );
  }
  return (
    <>
      To undo without it run <code>freehold undo</code> on its machine, or open the recovery page through <code>{way.command}</code> at{" "}
      <a href={way.href}>{way.href}</a>
    </>
  );
}
