import { createContext, useContext, useEffect, useRef, useState, type ReactNode } from "react";
import { request, RequestFailed } from "../../client/http";
import { browserSocket, LiveSocket, type Connection, type Listener } from "../../client/socket";

const Context = createContext<LiveSocket | null>(null);

async function signedIn(): Promise<boolean> {
  try {
    await request("/v1/me");
    return true;
  } catch (error) {
    if (error instanceof RequestFailed && error.status === 401) return false;
    throw error;
  }
}

/** Holds the one socket for everything below it. */
export function LiveProvider({ onSignedOut, children }: { onSignedOut: () => void; children: ReactNode }) {
  const [socket] = useState(() => new LiveSocket({ open: browserSocket, signedIn }));
  useEffect(() => {
    const stop = socket.watch((state) => {
      if (state === "signed-out") onSignedOut();
    });
    const hurry = () => socket.hurry();
    window.addEventListener("online", hurry);
    document.addEventListener("visibilitychange", hurry);
    socket.start();
    return () => {
      stop();
      window.removeEventListener("online", hurry);
      document.removeEventListener("visibilitychange", hurry);
      socket.close();
    };
  }, [socket, onSignedOut]);
  return <Context.Provider value={socket}>{children}</Context.Provider>;
}

export function useConnection(): Connection {
  const socket = useContext(Context);
  const [state, setState] = useState<Connection>(socket?.state ?? "connecting");
  useEffect(() => {
    if (socket === null) return;
    setState(socket.state);
    return socket.watch(setState);
  }, [socket]);
  return state;
}

/** Listen to a topic for as long as the component is shown. The listener may change freely. */
export function useTopic(name: string, listener: Listener, how: { durable?: boolean } = {}): void {
  const socket = useContext(Context);
  const latest = useRef(listener);
  useEffect(() => {
    latest.current = listener;
  });
  const durable = how.durable ?? false;
  useEffect(
    () =>
      socket?.subscribe(
        name,
        {
          event: (data, seq) => latest.current.event?.(data, seq),
          delta: (data) => latest.current.delta?.(data),
          resync: (seq) => latest.current.resync?.(seq),
          subscribed: (seq) => latest.current.subscribed?.(seq),
        },
        { durable },
      ),
    [socket, name, durable],
  );
}
