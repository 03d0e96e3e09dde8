import { useCallback, useEffect, useState } from "react";
import type { Me } from "./client/api";
import { problemOf, request, RequestFailed, type Problem } from "./client/http";
import { DevicePage } from "./features/device/DevicePage";
import { LiveProvider } from "./features/shell/live";
import { Shell } from "./features/shell/Shell";
import { SignIn } from "./features/sign-in/SignIn";
import { Notice } from "./ui/Notice";
import { ToastProvider } from "./ui/Toasts";

type Door = { at: "looking" } | { at: "outside" } | { at: "inside"; me: Me } | { at: "unreachable"; problem: Problem };

/** The keeper restarts a gateway within moments; nobody should have to press for it. */
const LOOK_AGAIN = 2_000;

export function App() {
  const [door, setDoor] = useState<Door>({ at: "looking" });
  const look = useCallback(() => {
    request<Me>("/v1/me")
      .then((me) => setDoor({ at: "inside", me }))
      .catch((error: unknown) => {
        if (error instanceof RequestFailed && error.status === 401) setDoor({ at: "outside" });
        else setDoor({ at: "unreachable", problem: problemOf(error) });
      });
  }, []);
  const signedIn = useCallback(() => {
    if (location.pathname === "/sign-in") history.replaceState(null, "", "/");
    look();
  }, [look]);
  const signedOut = useCallback(() => setDoor({ at: "outside" }), []);

  useEffect(() => {
    if (location.pathname === "/sign-in") setDoor({ at: "outside" });
    else look();
  }, [look]);

  const unreachable = door.at === "unreachable";
  useEffect(() => {
    if (!unreachable) return;
    const timer = setInterval(look, LOOK_AGAIN);
    return () => clearInterval(timer);
  }, [unreachable, look]);

  switch (door.at) {
    case "looking":
      return <main className="door" aria-busy="true" />;
    case "outside":
      return <SignIn onSignedIn={signedIn} />;
    case "inside":
      if (location.pathname === "/device") return <DevicePage />;
      return (
        <LiveProvider onSignedOut={signedOut}>
          <ToastProvider>
            <Shell me={door.me} onSignedOut={signedOut} />
          </ToastProvider>
        </LiveProvider>
      );
    case "unreachable":
      return (
        <main className="door">
          <h1>Freehold</h1>
          <Notice problem={door.problem} action={{ label: "Try again", run: () => location.reload() }} />
        </main>
      );
  }
}
