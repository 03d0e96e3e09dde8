import { createContext, type ReactNode, useCallback, useContext, useEffect, useRef, useState } from "react";
import { RequestFailed, request } from "../client/http";
import { browserSocket, type ConnectionState, LiveSocket, type TopicListener } from "../client/socket";
import { KeptValues, KeptValuesContext } from "./keptValues";

/** A phone that loses its network is told so within seconds. */
const PING_INTERVAL = 2_000;

export const SocketContext = createContext<LiveSocket | null>(null);

async function isSignedIn(): Promise<boolean> {
  try {
    await request("/v1/me");
    return true;
  } catch (error) {
    if (error instanceof RequestFailed && error.status === 401) return false;
    throw error;
  }
}

/** Holds the one socket for everything below it, and what is kept of the pages that were left. */
export function ConnectionProvider({ onSignedOut, children }: { onSignedOut: () => void; children: ReactNode }) {
  const [socket] = useState(() => new LiveSocket({ open: browserSocket, isSignedIn, pingInterval: PING_INTERVAL }));
  const [keptValues] = useState(() => new KeptValues());
  useEffect(() => {
    const stopWatching = socket.watch((state) => {
      if (state === "signed-out") onSignedOut();
    });
    const retry = () => socket.retryNow();
    window.addEventListener("online", retry);
    document.addEventListener("visibilitychange", retry);
    socket.start();
    return () => {
      stopWatching();
      window.removeEventListener("online", retry);
      document.removeEventListener("visibilitychange", retry);
      socket.close();
    };
  }, [socket, onSignedOut]);
  return (
    <SocketContext.Provider value={socket}>
      <KeptValuesContext value={keptValues}>{children}</KeptValuesContext>
    </SocketContext.Provider>
  );
}

export function useConnection(): ConnectionState {
  const socket = useContext(SocketContext);
  const [state, setState] = useState<ConnectionState>(socket?.state ?? "connecting");
  useEffect(() => {
    if (socket === null) return;
    setState(socket.state);
    return socket.watch(setState);
  }, [socket]);
  return state;
}

/** A function that says for how many milliseconds a ping of the socket has had no answer. */
export function useUnansweredPing(): () => number {
  const socket = useContext(SocketContext);
  return useCallback(() => socket?.unansweredFor ?? 0, [socket]);
}

/** Listens to a topic while the component is mounted; to none when `name` is null. The listener may change freely. */
export function useTopic(name: string | null, listener: TopicListener, options: { durable?: boolean } = {}): void {
  const socket = useContext(SocketContext);
  const latest = useRef(listener);
  useEffect(() => {
    latest.current = listener;
  });
  const durable = options.durable ?? false;
  useEffect(() => {
    if (socket === null || name === null) return;
    return socket.subscribe(
      name,
      {
        event: (data, seq) => latest.current.event?.(data, seq),
        delta: (data) => latest.current.delta?.(data),
        resync: (seq) => latest.current.resync?.(seq),
        subscribed: (seq) => latest.current.subscribed?.(seq),
      },
      { durable },
    );
  }, [socket, name, durable]);
}
