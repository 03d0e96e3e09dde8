import { useCallback, useEffect, useState } from "react";
import { request, RequestFailed, type Problem } from "./client/http";
import { ConnectPage } from "./features/connect/ConnectPage";
import { DevicePage } from "./features/device/DevicePage";
import { HealthPage } from "./features/health/HealthPage";
import { SignIn } from "./features/sign-in/SignIn";
import { Notice } from "./ui/Notice";

type Door = { at: "looking" } | { at: "outside" } | { at: "inside" } | { at: "unreachable"; problem: Problem };

export function App() {
  const [door, setDoor] = useState<Door>({ at: "looking" });
  const signedIn = useCallback(() => {
    if (location.pathname === "/sign-in") history.replaceState(null, "", "/");
    setDoor({ at: "inside" });
  }, []);
  const signedOut = useCallback(() => setDoor({ at: "outside" }), []);

  useEffect(() => {
    if (location.pathname === "/sign-in") {
      setDoor({ at: "outside" });
      return;
    }
    request("/v1/me")
      .then(() => setDoor({ at: "inside" }))
      .catch((error: unknown) => {
        if (error instanceof RequestFailed && error.status !== 401) setDoor({ at: "unreachable", problem: error.problem });
        else setDoor({ at: "outside" });
      });
  }, []);

  switch (door.at) {
    case "looking":
      return <main className="door" aria-busy="true" />;
    case "outside":
      return <SignIn onSignedIn={signedIn} />;
    case "inside":
      if (location.pathname === "/connect") return <ConnectPage />;
      return location.pathname === "/device" ? <DevicePage /> : <HealthPage onSignedOut={signedOut} />;
    case "unreachable":
      return (
        <main className="door">
          <h1>Freehold</h1>
          <Notice problem={door.problem} action={{ label: "Try again", run: () => location.reload() }} />
        </main>
      );
  }
}
