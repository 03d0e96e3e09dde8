import { type FormEvent, useState } from "react";
import type { KnownProvider, ModelChanged, ModelProvider, ModelTrial } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import {
  asksForAddress,
  type ConnectFields,
  connectBody,
  firstFields,
  needsKey,
  offeredLabel,
  sortOffered,
} from "./connect.logic";

interface ConnectFormProps {
  known: KnownProvider;
  connected: readonly ModelProvider[];
  onBack: () => void;
  onConnected: (name: string) => void;
}

/** The key and the address of one provider. It is tested before it is connected. */
export function ConnectForm({ known, connected, onBack, onConnected }: ConnectFormProps) {
  const [fields, setFields] = useState<ConnectFields>(() => firstFields(known, connected));
  const { trial, offered, problem, busy, test, connect } = useConnection(known, fields, setFields, onConnected);
  const isReady = trial?.ok === true;
  const change = (more: Partial<ConnectFields>) => setFields({ ...fields, ...more });

  function submit(event: FormEvent) {
    event.preventDefault();
    if (isReady) void connect();
    else void test();
  }

  return (
    <form className="stack" autoComplete="off" onSubmit={submit}>
      {problem && <Notice problem={problem} />}
      {known.note && <p className="quiet">{known.note}</p>}
      {asksForAddress(known) && (
        <label>
          Base URL
          <input
            required
            type="url"
            maxLength={2000}
            placeholder="http://127.0.0.1:8000/v1"
            value={fields.url}
            onChange={(event) => change({ url: event.target.value })}
            autoFocus={!needsKey(known)}
            autoCapitalize="off"
            spellCheck={false}
          />
        </label>
      )}
      <KeyField known={known} value={fields.key} onChange={(key) => change({ key })} disabled={busy !== null} />
      <label>
        Name here
        <input
          required
          maxLength={50}
          pattern="[A-Za-z0-9][A-Za-z0-9_\-]*"
          title="Letters, digits, hyphens and underscores"
          value={fields.name}
          onChange={(event) => change({ name: event.target.value })}
          autoCapitalize="off"
          spellCheck={false}
        />
      </label>
      <TrialReport trial={trial} />
      {offered.length > 0 && (
        <label>
          Model
          <select value={fields.model} autoFocus onChange={(event) => change({ model: event.target.value })}>
            <option value="">The agent chooses</option>
            {offered.map((one) => (
              <option key={one.name} value={one.name}>
                {offeredLabel(one)}
              </option>
            ))}
          </select>
        </label>
      )}
      <label className="radio">
        <input
          type="checkbox"
          checked={fields.isDefault}
          onChange={(event) => change({ isDefault: event.target.checked })}
        />
        Use it for agents that name no provider
      </label>
      <div className="dialog-foot">
        <button type="button" onClick={onBack}>
          Back
        </button>
        {trial !== null && !trial.ok && (
          <button type="button" disabled={busy !== null} onClick={() => void connect()}>
            Connect without a test
          </button>
        )}
        <button className="primary" disabled={busy !== null || (needsKey(known) && fields.key.trim() === "")}>
          {busy === "test" ? "Testing…" : busy === "connect" ? "Connecting…" : isReady ? "Connect" : "Test"}
        </button>
      </div>
    </form>
  );
}

interface KeyFieldProps {
  known: KnownProvider;
  value: string;
  onChange: (key: string) => void;
  disabled: boolean;
}

function KeyField({ known, value, onChange, disabled }: KeyFieldProps) {
  return (
    <>
      <label>
        {known.auth === "codex" ? "Content of auth.json" : known.auth === "claude-code" ? "Token" : "Key"}
        <input
          required={needsKey(known)}
          type="password"
          placeholder={needsKey(known) ? undefined : "Only if your server asks for one"}
          maxLength={65_536}
          value={value}
          disabled={disabled}
          onChange={(event) => onChange(event.target.value)}
          autoFocus={needsKey(known)}
          autoComplete="new-password"
          autoCapitalize="off"
          spellCheck={false}
          data-1p-ignore=""
          data-lpignore="true"
        />
      </label>
      <p className="quiet small-print">
        Stored encrypted on this machine, outside of the computer. Agents never see it.
        {known.key_page && (
          <>
            {" "}
            <a href={known.key_page} target="_blank" rel="noreferrer noopener">
              Get a key
            </a>
          </>
        )}
      </p>
    </>
  );
}

/** What a provider answered to a test, in its own words when it refused. */
export function TrialReport({ trial }: { trial: ModelTrial | null }) {
  return (
    <div role="status">
      {trial !== null && (
        <p className={trial.ok ? "success-text" : "problem-text"}>
          {trial.words}
          {trial.said && <q className="models-said">{trial.said}</q>}
        </p>
      )}
    </div>
  );
}

/** Tries the provider, then connects it. A change of a field that matters makes the trial out of date. */
function useConnection(
  known: KnownProvider,
  fields: ConnectFields,
  setFields: (change: (held: ConnectFields) => ConnectFields) => void,
  onConnected: (name: string) => void,
) {
  const [tried, setTried] = useState<{ fields: ConnectFields; trial: ModelTrial } | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState<"test" | "connect" | null>(null);
  const toasts = useToasts();
  const isSamePlace = tried !== null && tried.fields.key === fields.key && tried.fields.url === fields.url;
  const isCurrent = isSamePlace && (tried.trial.ok || tried.fields.model === fields.model);
  const path = `/v1/models/${encodeURIComponent(fields.name.trim())}`;

  async function run(what: "test" | "connect", action: () => Promise<void>) {
    setBusy(what);
    setProblem(null);
    try {
      await action();
    } catch (error) {
      setProblem(problemOf(error));
    }
    setBusy(null);
  }

  const body = connectBody(known, fields);
  return {
    trial: isCurrent ? tried.trial : null,
    /** Also after a model that did not answer, so that another can be chosen. */
    offered: isSamePlace ? sortOffered(tried.trial.offered, tried.trial.suggested) : [],
    problem,
    busy,
    test: () =>
      run("test", async () => {
        const trial = await request<ModelTrial>(`${path}/try`, { method: "POST", body });
        setTried({ fields, trial });
        if (trial.ok) setFields((held) => (held.model === "" ? { ...held, model: trial.suggested ?? "" } : held));
      }),
    connect: () =>
      run("connect", async () => {
        // A key may list models and have no credit to use one: the chosen model is asked for a word.
        if (tried !== null && isCurrent && tried.trial.ok && !["", tried.fields.model].includes(fields.model)) {
          const trial = await request<ModelTrial>(`${path}/try`, { method: "POST", body });
          setTried({ fields, trial });
          if (!trial.ok) return;
        }
        const changed = await request<ModelChanged>(path, { method: "PUT", body });
        const where = changed.overlay ? ` in ${changed.file}, because freehold.toml cannot be written` : "";
        toasts.done(`${changed.name} is connected${where}`);
        onConnected(changed.name);
      }),
  };
}
