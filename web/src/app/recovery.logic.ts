/** How to reach the keeper's recovery page from where this page was opened. */
export type RecoveryAccess =
  | { kind: "link"; href: string }
  /** The recovery page answers only on its own machine, so a tunnel leads there. */
  | { kind: "tunnel"; command: string; href: string };

/** Whether a host name means the machine that the browser runs on. */
export function isThisMachine(hostname: string): boolean {
  return (
    hostname === "localhost" ||
    hostname.endsWith(".localhost") ||
    /^127\.\d+\.\d+\.\d+$/.test(hostname) ||
    hostname === "[::1]"
  );
}

export function recoveryAccess(recovery: string, hostname: string): RecoveryAccess {
  if (isThisMachine(hostname)) return { kind: "link", href: recovery };
  const port = new URL(recovery).port || "80";
  return {
    kind: "tunnel",
    command: `ssh -L ${port}:localhost:${port} ${hostname}`,
    href: recovery,
  };
}
