import { recoveryAccess } from "./recovery.logic";

/** How to undo while the gateway is down, from where this page was opened. */
export function RecoveryHint({ recovery }: { recovery: string }) {
  const access = recoveryAccess(recovery, location.hostname);
  if (access.kind === "link") {
    return (
      <>
        To undo a change now, <a href={access.href}>open the recovery page</a>.
      </>
    );
  }
  return (
    <>
      To undo a change now, run <code>freehold undo</code> on its machine, or run <code>{access.command}</code> and open{" "}
      <a href={access.href}>{access.href}</a>
    </>
  );
}
