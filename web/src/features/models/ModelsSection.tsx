import { useState } from "react";
import type { ModelRow, ModelsState, ModelTrial, SecretRow } from "../../client/api";
import { problemOf, request, type Problem } from "../../client/http";
import { useAnswer, useNow } from "../../ui/answers";
import { ago } from "../../ui/moments";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import { TwoPress } from "../../ui/TwoPress";
import { ConnectHelp } from "./ConnectHelp";
import { KeyDialog } from "./KeyDialog";
import { keyRows, keyStateOf, vaultNameOf } from "./keys.logic";

/** Who can be asked, and the keys for it. */
export function ModelsSection() {
  const models = useAnswer<ModelsState>("/v1/models");
  const secrets = useAnswer<SecretRow[]>("/v1/secrets");
  const [asked, setAsked] = useState<{ name: string | null } | null>(null);
  const toasts = useToasts();

  function reload() {
    models.reload();
    secrets.reload();
  }

  async function forget(name: string) {
    try {
      await request(`/v1/secrets/${encodeURIComponent(name)}`, { method: "DELETE" });
      toasts.done(`The key ${name} is forgotten`);
    } catch (error) {
      toasts.failed(error);
    }
    reload();
  }

  return (
    <>
      <section aria-labelledby="models">
        <h3 id="models">Models</h3>
        {models.problem && <Notice problem={models.problem} action={{ label: "Try again", run: models.reload }} />}
        {models.value?.help && <ConnectHelp help={models.value.help} />}
        {models.value && models.value.models.length > 0 && (
          <ul className="rows">
            {models.value.models.map((model) => (
              <Model key={model.name} model={model} secrets={secrets.value} onKey={(name) => setAsked({ name })} />
            ))}
          </ul>
        )}
        {models.value && models.value.models.length > 0 && (
          <p className="quiet small-print">
            The first of freehold.toml is the default: a session uses it when it names no other. Models are added there under{" "}
            <code>[models.NAME]</code>.
          </p>
        )}
      </section>
      <section aria-labelledby="keys">
        <div className="section-head">
          <h3 id="keys">Keys</h3>
          <button className="small" onClick={() => setAsked({ name: null })}>
            New key
          </button>
        </div>
        {secrets.problem && <Notice problem={secrets.problem} action={{ label: "Try again", run: secrets.reload }} />}
        {secrets.value && <Keys models={models.value?.models ?? []} secrets={secrets.value} onSet={(name) => setAsked({ name })} onForget={(name) => void forget(name)} />}
      </section>
      {asked && (
        <KeyDialog
          name={asked.name}
          onClose={() => setAsked(null)}
          onKept={(name) => {
            setAsked(null);
            toasts.done(`The key ${name} is in the vault`);
            reload();
          }}
        />
      )}
    </>
  );
}

function Model({ model, secrets, onKey }: { model: ModelRow; secrets: readonly SecretRow[] | null; onKey: (name: string) => void }) {
  const [trial, setTrial] = useState<ModelTrial | "running" | Problem | null>(null);
  const key = keyStateOf(model, secrets);
  const name = vaultNameOf(model);

  async function tryOut() {
    setTrial("running");
    try {
      setTrial(await request<ModelTrial>(`/v1/models/${encodeURIComponent(model.name)}/test`, { method: "POST" }));
    } catch (error) {
      setTrial(problemOf(error));
    }
  }

  return (
    <li className="model" data-model={model.name}>
      <div className="grow">
        <p className="row-title">
          <strong>{model.name}</strong>{" "}
          {model.default && (
            <span className="chip" data-tone="leaf">
              default
            </span>
          )}{" "}
          <span className="chip">{model.kind}</span>
        </p>
        <p className="quiet">
          <code className="path">{model.address}</code>
          {model.model && ` · ${model.model}`}
        </p>
        <p className={key.tone === "amber" ? "trouble" : "quiet"}>{key.words}</p>
        <div role="status">{trial !== null && <Tried trial={trial} />}</div>
      </div>
      <div className="replies">
        {name !== null && key.tone === "amber" && (
          <button className="small" onClick={() => onKey(name)}>
            Set key
          </button>
        )}
        <button className="small" disabled={trial === "running"} onClick={() => void tryOut()} aria-label={`Test ${model.name}`}>
          {trial === "running" ? "Asking…" : "Test"}
        </button>
      </div>
    </li>
  );
}

function Tried({ trial }: { trial: ModelTrial | "running" | Problem }) {
  if (trial === "running") return null;
  if ("message" in trial) {
    return (
      <p className="trouble">
        {trial.message}. {trial.hint}
      </p>
    );
  }
  return (
    <>
      <p className={trial.ok ? "fine" : "trouble"}>
        {trial.words} <span className="quiet">({trial.milliseconds} ms)</span>
      </p>
      {trial.models.length > 0 && (
        <details>
          <summary className="quiet">Its models</summary>
          <p className="quiet names">{trial.models.join(", ")}</p>
        </details>
      )}
    </>
  );
}

interface KeysProps {
  models: readonly ModelRow[];
  secrets: readonly SecretRow[];
  onSet: (name: string) => void;
  onForget: (name: string) => void;
}

function Keys({ models, secrets, onSet, onForget }: KeysProps) {
  const now = useNow();
  const rows = keyRows(models, secrets);
  if (rows.length === 0) return <p className="empty">No keys. They stay on this machine, outside of the computer.</p>;
  return (
    <ul className="rows">
      {rows.map(({ name, secret, of }) => (
        <li key={name} data-key={name}>
          <div className="grow">
            <p className="row-title">
              <code className="path">{name}</code>{" "}
              {secret === null && (
                <span className="chip" data-tone="amber">
                  missing
                </span>
              )}
            </p>
            <p className="quiet">
              {of.length > 0 ? `for ${of.join(", ")}` : "no model uses it"}
              {secret !== null && ` · set ${ago(secret.set_at, now)} · ${secret.used_at === null ? "never used" : `used ${ago(secret.used_at, now)}`}`}
            </p>
          </div>
          <div className="replies">
            <button className="small" onClick={() => onSet(name)} aria-label={`${secret === null ? "Set" : "Replace"} ${name}`}>
              {secret === null ? "Set" : "Replace"}
            </button>
            {secret !== null && (
              <TwoPress className="small danger" label="Delete" sure="Really delete" name={`Delete ${name}`} onSure={() => onForget(name)} />
            )}
          </div>
        </li>
      ))}
    </ul>
  );
}
