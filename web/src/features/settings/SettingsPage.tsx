import { useState, useSyncExternalStore } from "react";
import { request } from "../../client/http";
import { useAnswer } from "../../ui/answers";
import { bytes } from "../../ui/moments";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import { HealthPart } from "../health/HealthPart";
import { readTheme, setTheme, THEMES, type Theme } from "../shell/theme";
import { SignIns } from "./SignIns";
import { Tokens } from "./Tokens";
import "./settings.css";

export default function SettingsPage({ onSignedOut }: { onSignedOut: () => void }) {
  const toasts = useToasts();
  const [leaving, setLeaving] = useState(false);

  async function signOut() {
    setLeaving(true);
    try {
      await request("/v1/sign-out", { method: "POST", body: {} });
      onSignedOut();
    } catch (error) {
      toasts.failed(error);
      setLeaving(false);
    }
  }

  return (
    <div className="column">
      <header className="head">
        <h1>Settings</h1>
        <button className="small push" disabled={leaving} onClick={() => void signOut()}>
          Sign out
        </button>
      </header>
      <HealthPart />
      <HistorySize />
      <Look />
      <SignIns onSignedOut={onSignedOut} />
      <Tokens />
    </div>
  );
}

interface Size {
  used: number;
  quota: number;
  entries: number;
}

function HistorySize() {
  const { value, problem, reload } = useAnswer<Size>("/v1/history/size");
  const share = value === null || value.quota === 0 ? 0 : Math.min(1, value.used / value.quota);
  return (
    <section aria-labelledby="history-size">
      <h2 id="history-size">History’s room</h2>
      {problem && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
      {value && (
        <div className="card size" data-full={share > 0.8 || undefined}>
          <p>
            <strong>{bytes(value.used)}</strong> of {bytes(value.quota)}
            <span className="quiet"> · {value.entries} entries</span>
          </p>
          <meter min={0} max={1} high={0.8} value={share} aria-label="Room used" />
          <p className="quiet">
            When it is full the oldest entries go. <code>history.quota</code> in freehold.toml sets how much it may take.
          </p>
        </div>
      )}
    </section>
  );
}

function listenTheme(changed: () => void): () => void {
  window.addEventListener("freehold:theme", changed);
  return () => window.removeEventListener("freehold:theme", changed);
}

const NAMES: Record<Theme, string> = { system: "As the system", light: "Light", dark: "Dark" };

function Look() {
  const theme = useSyncExternalStore(listenTheme, () => readTheme());
  return (
    <section aria-labelledby="look">
      <h2 id="look">Look</h2>
      <div className="filters" role="group" aria-labelledby="look">
        {THEMES.map((one) => (
          <button key={one} className="small" aria-pressed={one === theme} onClick={() => setTheme(one)}>
            {NAMES[one]}
          </button>
        ))}
      </div>
    </section>
  );
}
