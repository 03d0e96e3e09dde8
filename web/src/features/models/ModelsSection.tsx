import { useState } from "react";
import type { ConnectModel, ModelProvider, ModelsState, ModelTrial, SecretInfo } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { hasKind, useResource } from "../../data/resource";
import { ConfirmButton } from "../../ui/ConfirmButton";
import { formatAge, secondsOf } from "../../ui/format";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import { useNow } from "../../ui/useNow";
import { ConnectDialog } from "./ConnectDialog";
import { offeredLabel, sortOffered } from "./connect.logic";
import { KeyDialog } from "./KeyDialog";
import "./models.css";
import { translate } from "../../language/translation";
import { keyRows, keyState, vaultName } from "./keys.logic";

/** The model providers and their keys. */
export function ModelsSection() {
  const models = useResource<ModelsState>("/v1/models", {
    topic: "timeline",
    durable: true,
    concerns: (event) => hasKind(event, "models.provider_"),
  });
  const secrets = useResource<SecretInfo[]>("/v1/secrets");
  const [dialog, setDialog] = useState<{ name: string | null } | null>(null);
  const [connecting, setConnecting] = useState(false);
  const toasts = useToasts();

  function reload() {
    models.reload();
    secrets.reload();
  }

  async function change(path: string, method: string, done: string) {
    try {
      await request(path, { method, ...(method === "POST" ? { body: {} } : {}) });
      toasts.done(done);
    } catch (error) {
      toasts.failed(error);
    }
    reload();
  }

  async function chooseModel(model: ModelProvider, chosen: string) {
    const body: ConnectModel = {
      kind: model.kind,
      auth: model.auth,
      base_url: model.address,
      ...(chosen === "" ? {} : { model: chosen }),
    };
    try {
      await request(modelPath(model), { method: "PUT", body });
    } catch (error) {
      toasts.failed(error);
    }
    reload();
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
        <div className="section-head">
          <h3 id="models">Models</h3>
          <button className="small primary" onClick={() => setConnecting(true)}>
            Connect a model
          </button>
        </div>
        {models.problem && <Notice problem={models.problem} action={{ label: "Try again", run: models.reload }} />}
        {models.value?.unapplied && (
          <Notice
            problem={{
              code: "manifest.invalid",
              message: "freehold.toml was changed and is not applied",
              hint: models.value.unapplied,
            }}
          />
        )}
        {models.value?.models.length === 0 && (
          <p className="empty">No model is connected. Keys stay on this machine, outside of the computer.</p>
        )}
        {models.value && models.value.models.length > 0 && (
          <ul className="rows">
            {models.value.models.map((model) => (
              <Model
                key={model.name}
                model={model}
                secrets={secrets.value}
                onKey={(name) => setDialog({ name })}
                onDefault={() => void change(`${modelPath(model)}/default`, "POST", `${model.name} is the default now`)}
                onModel={(chosen) => void chooseModel(model, chosen)}
                onDisconnect={() => void change(modelPath(model), "DELETE", `${model.name} is disconnected`)}
              />
            ))}
          </ul>
        )}
        {models.value && models.value.models.length > 0 && (
          <p className="quiet small-print">
            Agents that name no provider use the default. A change takes effect at once, and is in freehold.toml.
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
      {connecting && (
        <ConnectDialog
          onClose={() => setConnecting(false)}
          onConnected={() => {
            setConnecting(false);
            reload();
          }}
        />
      )}
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

const modelPath = (model: ModelProvider) => `/v1/models/${encodeURIComponent(model.name)}`;

interface ModelProps {
  model: ModelProvider;
  secrets: readonly SecretInfo[] | null;
  onKey: (name: string) => void;
  onDefault: () => void;
  onModel: (chosen: string) => void;
  onDisconnect: () => void;
}

function Model({ model, secrets, onKey, onDefault, onModel, onDisconnect }: ModelProps) {
  const [trial, setTrial] = useState<ModelTrial | "running" | Problem | null>(null);
  const key = keyState(model, secrets);
  const name = vaultName(model);

  async function test() {
    setTrial("running");
    try {
      setTrial(await request<ModelTrial>(`${modelPath(model)}/test`, { method: "POST" }));
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
          <span className="chip">{model.kind}</span>{" "}
          {model.agent !== null && <span className="chip">only for {model.agent}</span>}
        </p>
        <p className="quiet">
          <code className="path">{model.address}</code>
          {model.model && ` · ${model.model}`}
        </p>
        <p className={key.tone === "amber" ? "problem-text" : "quiet"}>{key.text}</p>
        <div role="status">{trial !== null && <TrialResult trial={trial} />}</div>
        {trial !== null && trial !== "running" && "offered" in trial && trial.offered.length > 0 && (
          <label>
            Model when none is chosen
            <select value={model.model ?? ""} onChange={(event) => onModel(event.target.value)}>
              <option value="">The agent chooses</option>
              {model.model !== null && !trial.models.includes(model.model) && (
                <option value={model.model}>{model.model}</option>
              )}
              {sortOffered(trial.offered, trial.suggested).map((one) => (
                <option key={one.name} value={one.name}>
                  {offeredLabel(one)}
                </option>
              ))}
            </select>
          </label>
        )}
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
        {!model.default && (
          <button className="small" onClick={onDefault} aria-label={`Make default: ${model.name}`}>
            Make default
          </button>
        )}
        <ConfirmButton
          className="small danger"
          label="Disconnect"
          confirmLabel="Press again to disconnect"
          spoken={`Disconnect ${model.name}`}
          onConfirm={onDisconnect}
        />
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
    <p className={trial.ok ? "success-text" : "problem-text"}>
      {trial.words} <span className="quiet">({trial.milliseconds} ms)</span>
      {trial.said && <q className="models-said">{trial.said}</q>}
    </p>
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
                ` · set ${formatAge(secondsOf(secret.set_at), now)} · ${secret.used_at === null ? "never used" : translate("used {0}", formatAge(secondsOf(secret.used_at), now))}`}
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
                spoken={`Delete ${name}`}
                onConfirm={() => onDelete(name)}
              />
            )}
          </div>
        </li>
      ))}
    </ul>
  );
}
