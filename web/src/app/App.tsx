import { startTransition, useCallback, useEffect, useState } from "react";
import type { Me } from "../client/api";
import { ME } from "../client/early";
import { type Problem, problemOf, RequestFailed, request } from "../client/http";
import { ConnectionProvider } from "../data/connection";
import { DevicePage } from "../features/device/DevicePage";
import { SignInPage } from "../features/sign-in/SignInPage";
import { ErrorBoundary } from "../ui/ErrorBoundary";
import { Notice } from "../ui/Notice";
import { ToastProvider } from "../ui/Toasts";
import { EmergencyPage } from "./EmergencyPage";
import { LoadingFrame } from "./LoadingFrame";
import { Shell } from "./Shell";

type Access =
  | { state: "unknown" }
  | { state: "signed-out" }
  | { state: "signed-in"; me: Me }
  | { state: "unreachable"; problem: Problem };

/** The keeper restarts a gateway within seconds, so the page tries again without a press. */
const RETRY_INTERVAL = 2_000;

const OFFLINE: Problem = {
  code: "offline",
  message: "You are offline",
  hint: "This page goes on when the connection is back",
};

export function App() {
  const [access, setAccess] = useState<Access>({ state: "unknown" });
  const check = useCallback(() => {
    request<Me>(ME)
      // Drawn in short steps, as the whole page is.
      .then((me) => startTransition(() => setAccess({ state: "signed-in", me })))
      .catch((error: unknown) => {
        if (error instanceof RequestFailed && error.status === 401) setAccess({ state: "signed-out" });
        else setAccess({ state: "unreachable", problem: navigator.onLine ? problemOf(error) : OFFLINE });
      });
  }, []);
  const onSignedIn = useCallback(
    (page = "/") => {
      if (location.pathname === "/sign-in") history.replaceState(null, "", page);
      check();
    },
    [check],
  );
  const onSignedOut = useCallback(() => setAccess({ state: "signed-out" }), []);

  useEffect(() => {
    if (location.pathname === "/sign-in") setAccess({ state: "signed-out" });
    else check();
  }, [check]);

  const unreachable = access.state === "unreachable";
  useEffect(() => {
    if (!unreachable) return;
    const timer = setInterval(check, RETRY_INTERVAL);
    window.addEventListener("online", check);
    return () => {
      clearInterval(timer);
      window.removeEventListener("online", check);
    };
  }, [unreachable, check]);

  switch (access.state) {
    case "unknown":
      return <LoadingFrame />;
    case "signed-out":
      return (
        <ErrorBoundary name="The sign-in page">
          <SignInPage onSignedIn={onSignedIn} />
        </ErrorBoundary>
      );
    case "signed-in":
      if (location.pathname === "/device")
        return (
          <ErrorBoundary name="This page">
            <DevicePage />
          </ErrorBoundary>
        );
      return (
        <ErrorBoundary name="Freehold" fallback={<EmergencyPage recovery={access.me.recovery} />}>
          <ConnectionProvider onSignedOut={onSignedOut}>
            <ToastProvider>
              <Shell me={access.me} onSignedOut={onSignedOut} />
            </ToastProvider>
          </ConnectionProvider>
        </ErrorBoundary>
      );
    case "unreachable":
      return (
        <main className="centered-page">
          <h1>Freehold</h1>
          <Notice problem={access.problem} action={{ label: "Try again", run: () => location.reload() }} />
        </main>
      );
  }
}
