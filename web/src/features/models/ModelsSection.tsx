import { useState } from "react";
import type { ModelProvider, ModelsState, ModelTrial, SecretInfo } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { useResource } from "../../data/resource";
import { ConfirmButton } from "../../ui/ConfirmButton";
import { formatAge } from "../../ui/format";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import { useNow } from "../../ui/useNow";
import { ConnectHelp } from "./ConnectHelp";
import { KeyDialog } from "./KeyDialog";
import "./models.css";
import { keyRows, keyState, vaultName } from "./keys.logic";

/** The model providers and their keys. */
export function ModelsSection() {
  const models = useResource<ModelsState>("/v1/models");
  const secrets = useResource<SecretInfo[]>("/v1/secrets");
  const [dialog, setDialog] = useState<{ name: string | null } | null>(null);
  const toasts = useToasts();

  function reload() {
    models.reload();
    secrets.reload();
  }

  async function deleteKey(name: string) {
    try {
      await request(`/v1/secrets/${encodeURIComponent(name)}`, { method: "DELETE" });
      toasts.done(`The key ${name} was deleted`);
    } catch (error) {
      toasts.failed(error);
    }
    reload();
  }

  // Both are drawn at once, so that neither moves the other.
  if ([models, secrets].some(({ value, problem }) => value === null && problem === null))
    return <p className="loading quiet fade-in-late">Loading…</p>;
  return (
    <>
      <section aria-labelledby="models">
        <h3 id="models">Models</h3>
        {models.problem && <Notice problem={models.problem} action={{ label: "Try again", run: models.reload }} />}
        {models.value?.help && <ConnectHelp help={models.value.help} />}
        {models.value && models.value.models.length > 0 && (
          <ul className="rows">
            {models.value.models.map((model) => (
              <Model key={model.name} model={model} secrets={secrets.value} onKey={(name) => setDialog({ name })} />
            ))}
          </ul>
        )}
        {models.value && models.value.models.length > 0 && (
          <p className="quiet small-print">
            The first model in freehold.toml is the default. Add models there under <code>[models.NAME]</code>.
          </p>
        )}
      </section>
      <section aria-labelledby="keys">
        <div className="section-head">
          <h3 id="keys">Keys</h3>
          <button className="small" onClick={() => setDialog({ name: null })}>
            Add a key
          </button>
        </div>
        {secrets.problem && <Notice problem={secrets.problem} action={{ label: "Try again", run: secrets.reload }} />}
        {secrets.value && (
          <Keys
            models={models.value?.models ?? []}
            secrets={secrets.value}
            onSet={(name) => setDialog({ name })}
            onDelete={(name) => void deleteKey(name)}
          />
        )}
      </section>
      {dialog && (
        <KeyDialog
          name={dialog.name}
          onClose={() => setDialog(null)}
          onSaved={(name) => {
            setDialog(null);
            toasts.done(`The key ${name} was saved`);
            reload();
          }}
        />
      )}
    </>
  );
}

function Model({
  model,
  secrets,
  onKey,
}: {
  model: ModelProvider;
  secrets: readonly SecretInfo[] | null;
  onKey: (name: string) => void;
}) {
  const [trial, setTrial] = useState<ModelTrial | "running" | Problem | null>(null);
  const key = keyState(model, secrets);
  const name = vaultName(model);

  async function test() {
    setTrial("running");
    try {
      setTrial(await request<ModelTrial>(`/v1/models/${encodeURIComponent(model.name)}/test`, { method: "POST" }));
    } catch (error) {
      setTrial(problemOf(error));
    }
  }

  return (
    <li className="wrapping-row" data-model={model.name}>
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
        <p className={key.tone === "amber" ? "problem-text" : "quiet"}>{key.text}</p>
        <div role="status">{trial !== null && <TrialResult trial={trial} />}</div>
      </div>
      <div className="answers">
        {name !== null && key.tone === "amber" && (
          <button className="small" onClick={() => onKey(name)}>
            Set key
          </button>
        )}
        <button
          className="small"
          disabled={trial === "running"}
          onClick={() => void test()}
          aria-label={`Test ${model.name}`}
        >
          {trial === "running" ? "Testing…" : "Test"}
        </button>
      </div>
    </li>
  );
}

function TrialResult({ trial }: { trial: ModelTrial | "running" | Problem }) {
  if (trial === "running") return null;
  if ("message" in trial) {
    return (
      <p className="problem-text">
        {trial.message}. {trial.hint}
      </p>
    );
  }
  return (
    <>
      <p className={trial.ok ? "success-text" : "problem-text"}>
        {trial.words} <span className="quiet">({trial.milliseconds} ms)</span>
      </p>
      {trial.models.length > 0 && (
        <details>
          <summary className="quiet">Available models</summary>
          <p className="quiet models-names">{trial.models.join(", ")}</p>
        </details>
      )}
    </>
  );
}

interface KeysProps {
  models: readonly ModelProvider[];
  secrets: readonly SecretInfo[];
  onSet: (name: string) => void;
  onDelete: (name: string) => void;
}

function Keys({ models, secrets, onSet, onDelete }: KeysProps) {
  const now = useNow();
  const rows = keyRows(models, secrets);
  if (rows.length === 0)
    return <p className="empty">No keys yet. Keys are stored on this machine, outside of the computer.</p>;
  return (
    <ul className="rows">
      {rows.map(({ name, secret, usedBy }) => (
        <li key={name} className="wrapping-row" data-key={name}>
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
              {usedBy.length > 0 ? `used by ${usedBy.join(", ")}` : "not used by a model"}
              {secret !== null &&
                ` · set ${formatAge(secret.set_at, now)} · ${secret.used_at === null ? "never used" : `used ${formatAge(secret.used_at, now)}`}`}
            </p>
          </div>
          <div className="answers">
            <button
              className="small"
              onClick={() => onSet(name)}
              aria-label={`${secret === null ? "Set" : "Replace"} ${name}`}
            >
              {secret === null ? "Set" : "Replace"}
            </button>
            {secret !== null && (
              <ConfirmButton
                className="small danger"
                label="Delete"
                confirmLabel="Press again to delete"
                name={`Delete ${name}`}
                onConfirm={() => onDelete(name)}
              />
            )}
          </div>
        </li>
      ))}
    </ul>
  );
}
