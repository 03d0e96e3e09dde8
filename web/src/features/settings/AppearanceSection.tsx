import { useSyncExternalStore } from "react";
import type { Meta, ProgramsState } from "../../client/api";
import { useResource } from "../../data/resource";
import { LANGUAGE, LANGUAGES, type Language, setLanguage } from "../../language/translation";
import { Facts } from "../../ui/Facts";
import { Notice } from "../../ui/Notice";
import { readTheme, setTheme, THEME_CHANGED, THEMES, type Theme } from "../../ui/theme";

const NAMES: Record<Theme, string> = { system: "Same as the system", light: "Light", dark: "Dark" };

function listenTheme(changed: () => void): () => void {
  window.addEventListener(THEME_CHANGED, changed);
  return () => window.removeEventListener(THEME_CHANGED, changed);
}

export function AppearanceSection() {
  const theme = useSyncExternalStore(listenTheme, () => readTheme());
  return (
    <>
      <section aria-labelledby="theme">
        <h3 id="theme">Theme</h3>
        <div className="filters" role="group" aria-labelledby="theme">
          {THEMES.map((one) => (
            <button key={one} className="small" aria-pressed={one === theme} onClick={() => setTheme(one)}>
              {NAMES[one]}
            </button>
          ))}
        </div>
      </section>
      <section aria-labelledby="language">
        <h3 id="language">Language</h3>
        <div className="filters" role="group" aria-labelledby="language">
          {(Object.keys(LANGUAGES) as Language[]).map((one) => (
            <button
              key={one}
              className="small"
              lang={one}
              aria-pressed={one === LANGUAGE}
              onClick={() => setLanguage(one)}
            >
              {LANGUAGES[one]}
            </button>
          ))}
        </div>
        <p className="quiet">Agents, files, errors of programs and the guides keep their own language.</p>
      </section>
      <About />
    </>
  );
}

function About() {
  const meta = useResource<Meta>("/v1/meta");
  const programs = useResource<ProgramsState>("/v1/programs");
  const problem = meta.problem ?? programs.problem;
  const reload = () => {
    meta.reload();
    programs.reload();
  };
  return (
    <section aria-labelledby="about">
      <h3 id="about">About this Freehold</h3>
      {problem && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
      <Facts
        className="card"
        facts={[
          ["Version", meta.value?.version ?? "…"],
          ["Home", <Path key="home" path={programs.value?.home} />],
          ["freehold.toml", <Path key="manifest" path={meta.value?.manifest_checksum.slice(0, 16)} />],
          ["Metrics", <Path key="metrics" path={meta.value?.metrics} />],
        ]}
      />
    </section>
  );
}

const Path = ({ path = "…" }: { path: string | undefined }) => <code className="path">{path}</code>;
