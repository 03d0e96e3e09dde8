import { useState } from "react";
import type {
  FoundProvider,
  KnownProvider,
  ModelProvider,
  ModelsState,
  ModelTrial,
  ProviderOffers,
} from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { useResource } from "../../data/resource";
import { Dialog } from "../../ui/Dialog";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import { ConnectForm, TrialReport } from "./ConnectForm";
import { foundBody, freeName } from "./connect.logic";
import "./models.css";

interface ConnectDialogProps {
  onClose: () => void;
  /** A provider was connected, and can be used now. */
  onConnected: (name: string) => void;
}

/** Connects a model provider: one that was found on this machine with one press, or any other with its key. */
export function ConnectDialog({ onClose, onConnected }: ConnectDialogProps) {
  const offers = useResource<ProviderOffers>("/v1/model-offers");
  const models = useResource<ModelsState>("/v1/models");
  const [known, setKnown] = useState<KnownProvider | null>(null);
  const connected = models.value?.models ?? [];
  const problem = offers.problem ?? models.problem;

  return (
    <Dialog title={known === null ? "Connect a model" : known.title} onClose={onClose}>
      {problem && (
        <Notice
          problem={problem}
          action={{
            label: "Try again",
            run: () => {
              offers.reload();
              models.reload();
            },
          }}
        />
      )}
      {known !== null ? (
        <ConnectForm known={known} connected={connected} onBack={() => setKnown(null)} onConnected={onConnected} />
      ) : offers.value === null || models.value === null ? (
        <p className="loading quiet fade-in-late">Looking for models on this machine…</p>
      ) : (
        <Choices offers={offers.value} connected={connected} onChoose={setKnown} onConnected={onConnected} />
      )}
      {known === null && (
        <div className="dialog-foot">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      )}
    </Dialog>
  );
}

interface ChoicesProps {
  offers: ProviderOffers;
  connected: readonly ModelProvider[];
  onChoose: (known: KnownProvider) => void;
  onConnected: (name: string) => void;
}

function Choices({ offers, connected, onChoose, onConnected }: ChoicesProps) {
  return (
    <div className="stack">
      {offers.found.length > 0 && (
        <section aria-labelledby="models-found">
          <h3 id="models-found">Found on this machine</h3>
          <ul className="rows">
            {offers.found.map((found) => (
              <Found
                key={`${found.name} ${found.variable}`}
                found={found}
                known={offers.known.find((one) => one.name === found.name)}
                connected={connected}
                onConnected={onConnected}
              />
            ))}
          </ul>
          <p className="quiet small-print">Nothing of this is used until you connect it.</p>
        </section>
      )}
      <section aria-labelledby="models-providers">
        <h3 id="models-providers">Providers</h3>
        <div className="models-providers">
          {offers.known.map((one) => (
            <button key={one.name} type="button" data-provider={one.name} onClick={() => onChoose(one)}>
              <span>{one.title}</span>
              <small className="quiet">{hintOf(one)}</small>
            </button>
          ))}
        </div>
      </section>
    </div>
  );
}

function hintOf(known: KnownProvider): string {
  if (known.agent !== null) return `for the agent ${known.agent}`;
  if (known.local) return "on this machine";
  return known.address === null ? "OpenAI-compatible" : "API key";
}

interface FoundProps {
  found: FoundProvider;
  known: KnownProvider | undefined;
  connected: readonly ModelProvider[];
  onConnected: (name: string) => void;
}

function Found({ found, known, connected, onConnected }: FoundProps) {
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<ModelTrial | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const toasts = useToasts();
  if (known === undefined) return null;

  async function connect(provider: KnownProvider) {
    const name = freeName(provider.name, connected);
    const path = `/v1/models/${encodeURIComponent(name)}`;
    setBusy(true);
    setRefusal(null);
    setProblem(null);
    try {
      const isFirst = connected.length === 0;
      const trial = await request<ModelTrial>(`${path}/try`, {
        method: "POST",
        body: foundBody(found, provider, null, isFirst),
      });
      if (!trial.ok) {
        setRefusal(trial);
        setBusy(false);
        return;
      }
      await request(path, { method: "PUT", body: foundBody(found, provider, trial.suggested, isFirst) });
      toasts.done(`${found.title} is connected`);
      onConnected(name);
    } catch (error) {
      setProblem(problemOf(error));
      setBusy(false);
    }
  }

  return (
    <li className="wrapping-row" data-found={found.name}>
      <div className="grow">
        <p className="row-title">
          <strong>{found.title}</strong>
        </p>
        <p className="quiet">{found.words}</p>
        <TrialReport trial={refusal} />
        {problem && <Notice problem={problem} />}
      </div>
      <div className="answers">
        <button
          type="button"
          className="small primary"
          disabled={busy}
          aria-label={`Connect ${found.title}`}
          onClick={() => void connect(known)}
        >
          {busy ? "Connecting…" : "Connect"}
        </button>
      </div>
    </li>
  );
}
