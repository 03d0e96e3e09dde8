/** How the keeper's recovery page is reached from where this page was opened. */
export type Recovery =
  | { how: "link"; href: string }
  /** It answers only on its own machine: a tunnel leads there, or the command line does without it. */
  | { how: "tunnel"; command: string; href: string };

/** Whether a name leads to the very machine that the browser runs on. */
export function isThisMachine(hostname: string): boolean {
  return hostname === "localhost" || hostname.endsWith(".localhost") || /^127\.\d+\.\d+\.\d+$/.test(hostname) || hostname === "[::1]";
}

export function wayToRecovery(recovery: string, hostname: string): Recovery {
  if (isThisMachine(hostname)) return { how: "link", href: recovery };
  const port = new URL(recovery).port || "80";
  return { how: "tunnel", command: `ssh -L ${port}:localhost:${port} ${hostname}`, href: `http://localhost:${port}/` };
}
