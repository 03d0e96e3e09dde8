import { useSyncExternalStore } from "react";
import type { Meta, ProgramsState } from "../../client/api";
import { useAnswer } from "../../ui/answers";
import { Notice } from "../../ui/Notice";
import { readTheme, setTheme, THEMES, type Theme } from "../shell/theme";

const NAMES: Record<Theme, string> = { system: "As the system", light: "Light", dark: "Dark" };

function listenTheme(changed: () => void): () => void {
  window.addEventListener("freehold:theme", changed);
  return () => window.removeEventListener("freehold:theme", changed);
}

export function LookSection() {
  const theme = useSyncExternalStore(listenTheme, () => readTheme());
  return (
    <>
      <section aria-labelledby="look">
        <h3 id="look">Theme</h3>
        <div className="filters" role="group" aria-labelledby="look">
          {THEMES.map((one) => (
            <button key={one} className="small" aria-pressed={one === theme} onClick={() => setTheme(one)}>
              {NAMES[one]}
            </button>
          ))}
        </div>
      </section>
      <About />
    </>
  );
}

function About() {
  const meta = useAnswer<Meta>("/v1/meta");
  const programs = useAnswer<ProgramsState>("/v1/programs");
  const problem = meta.problem ?? programs.problem;
  return (
    <section aria-labelledby="about">
      <h3 id="about">About this Freehold</h3>
      {problem && <Notice problem={problem} action={{ label: "Try again", run: () => (meta.reload(), programs.reload()) }} />}
      <dl className="facts card">
        <div>
          <dt>Version</dt>
          <dd>{meta.value?.version ?? "…"}</dd>
        </div>
        <div>
          <dt>Home</dt>
          <dd>
            <code className="path">{programs.value?.home ?? "…"}</code>
          </dd>
        </div>
        <div>
          <dt>freehold.toml</dt>
          <dd>
            <code className="path">{meta.value?.manifest_checksum.slice(0, 16) ?? "…"}</code>
          </dd>
        </div>
        <div>
          <dt>Metrics</dt>
          <dd>
            <code className="path">{meta.value?.metrics ?? "…"}</code>
          </dd>
        </div>
      </dl>
    </section>
  );
}
