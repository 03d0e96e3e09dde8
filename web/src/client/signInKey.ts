/**
 * The key with which this browser is signed in. It is kept in the storage of this origin, which has a port, and not in a
 * cookie: a browser sends cookies to every port of a name, also to an app that `ssh -L` forwards.
 */
const STORAGE_KEY = "freehold.sign-in";
const SUBPROTOCOL = "freehold";

export function readKey(): string | null {
  return localStorage.getItem(STORAGE_KEY);
}

export function storeKey(key: string | null): void {
  if (key === null) localStorage.removeItem(STORAGE_KEY);
  else localStorage.setItem(STORAGE_KEY, key);
}

/** The header of a request. */
export function authorization(): Record<string, string> {
  const key = readKey();
  return key === null ? {} : { authorization: `Sign-In ${key}` };
}

/** Opens a WebSocket at this path. A page cannot set its headers, so the key is one of the offered subprotocols. */
export function openSocket(path: string): WebSocket {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  return new WebSocket(`${scheme}://${location.host}${path}`, [SUBPROTOCOL, `${SUBPROTOCOL}.key.${readKey() ?? ""}`]);
}
