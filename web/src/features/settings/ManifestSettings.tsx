import { type FormEvent, useEffect, useState } from "react";
import type { ManifestSetting, ManifestSettings as Settings } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { useResource } from "../../data/resource";
import { Notice } from "../../ui/Notice";
import { useRoute } from "../../ui/route";
import { visibleText } from "../../ui/visibleText";
import { changeText, matching, placeText, readTyped, type SettingValue, typedText } from "./manifest.logic";

/** Everything that the manifest can say. What is safe is changed here; the rest names the line to change. */
export function ManifestSettings() {
  const { value, problem, reload, set } = useResource<Settings>("/v1/settings");
  const asked = useRoute().query.get("find") ?? "";
  const [query, setQuery] = useState(asked);
  useEffect(() => setQuery(asked), [asked]);
  const [changed, setChanged] = useState(false);
  if (problem) return <Notice problem={problem} action={{ label: "Try again", run: reload }} />;
  if (value === null) return <p className="loading quiet fade-in-late">Loading…</p>;
  const sections = matching(value.sections, query, changed);
  const waits = value.sections.some((section) => section.settings.some((one) => one.waits));
  return (
    <div className="settings-manifest">
      <p className="quiet">
        All settings of <code>{visibleText(value.path)}</code>.
      </p>
      {waits && (
        <p className="bar" data-tone="amber" role="status">
          Some changes take effect when Freehold is restarted: <code>freehold down</code>, then{" "}
          <code>freehold up -d</code>.
        </p>
      )}
      <div className="settings-manifest-find">
        <input
          type="search"
          aria-label="Find a setting"
          placeholder="Find a setting"
          value={query}
          onChange={(event) => setQuery(event.target.value)}
        />
        <label className="radio">
          <input type="checkbox" checked={changed} onChange={(event) => setChanged(event.target.checked)} />
          Only what is set
        </label>
      </div>
      {sections.length === 0 && <p className="empty">No setting matches.</p>}
      {sections.map((section) => (
        <section key={section.name} aria-labelledby={`setting-${section.name}`}>
          <h3 id={`setting-${section.name}`}>{section.name}</h3>
          {section.meaning && <p className="quiet">{section.meaning}</p>}
          <ul className="rows">
            {section.settings.map((one) => (
              <li key={one.key}>
                <SettingRow setting={one} onChanged={set} />
              </li>
            ))}
          </ul>
        </section>
      ))}
    </div>
  );
}

function SettingRow({ setting, onChanged }: { setting: ManifestSetting; onChanged: (settings: Settings) => void }) {
  const [isOpen, setOpen] = useState(false);
  const value = setting.value ?? setting.default ?? "not set";
  return (
    <div className="settings-manifest-row">
      <div className="settings-manifest-head">
        <strong className="settings-manifest-key">{visibleText(setting.key)}</strong>
        {setting.waits && (
          <span className="chip" data-tone="amber">
            after a restart
          </span>
        )}
        <code className="settings-manifest-value" title={placeText(setting)}>
          {visibleText(value)}
        </code>
        <button
          type="button"
          className="small"
          aria-expanded={isOpen}
          aria-label={`${setting.can_change ? "Change" : "How to change"} ${visibleText(setting.key)}`}
          onClick={() => setOpen(!isOpen)}
        >
          {setting.can_change ? "Change" : "How to change"}
        </button>
      </div>
      {setting.meaning && <p className="quiet">{setting.meaning}</p>}
      {setting.place !== "default" && <p className="quiet">{placeText(setting)}</p>}
      {isOpen && !setting.can_change && <p>{changeText(setting)}</p>}
      {isOpen && setting.can_change && (
        <SettingForm
          setting={setting}
          onChanged={(settings) => {
            setOpen(false);
            onChanged(settings);
          }}
        />
      )}
    </div>
  );
}

function SettingForm({ setting, onChanged }: { setting: ManifestSetting; onChanged: (settings: Settings) => void }) {
  const [typed, setTyped] = useState(() => typedText(setting));
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const value = readTyped(setting.kind, typed);
  const choices = setting.kind === "truth" ? ["true", "false"] : setting.choices;

  async function save(next: SettingValue | undefined) {
    if (next === undefined) return;
    setBusy(true);
    setProblem(null);
    try {
      onChanged(await request<Settings>("/v1/settings", { method: "PUT", body: { key: setting.key, value: next } }));
    } catch (error) {
      setProblem(problemOf(error));
      setBusy(false);
    }
  }
  function submit(event: FormEvent) {
    event.preventDefault();
    void save(value);
  }
  return (
    <form className="stack" onSubmit={submit}>
      {choices.length > 0 ? (
        <select aria-label={`Value of ${setting.key}`} value={typed} onChange={(event) => setTyped(event.target.value)}>
          {!choices.includes(typed) && <option value={typed}>{typed}</option>}
          {choices.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      ) : (
        <input
          aria-label={`Value of ${setting.key}`}
          value={typed}
          maxLength={1_000}
          placeholder={setting.default ?? ""}
          autoCapitalize="off"
          spellCheck={false}
          onChange={(event) => setTyped(event.target.value)}
        />
      )}
      <p className="quiet">
        {setting.is_live
          ? "It takes effect at once."
          : "It takes effect when Freehold is restarted, which ends the programs and terminals of the computer."}
        {setting.kind === "list" && " Separate several with commas."}
        {setting.default !== null && ` The default is ${setting.default}.`}
      </p>
      {problem && <Notice problem={problem} />}
      <div className="answers">
        <button type="submit" className="primary" disabled={busy || value === undefined}>
          Save
        </button>
        {setting.place !== "default" && (
          <button type="button" disabled={busy} onClick={() => void save(null)}>
            Use the default
          </button>
        )}
      </div>
    </form>
  );
}
