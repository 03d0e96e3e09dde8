import { type FormEvent, useEffect, useState } from "react";
import type { Neighbour } from "../../client/api";
import { ConfirmButton } from "../../ui/ConfirmButton";
import { formatDateTime } from "../../ui/format";
import { visibleText } from "../../ui/visibleText";
import { AgentCards } from "./AgentCards";
import { GrantChoice } from "./GrantChoice";
import { accountText, grantsText } from "./neighbours.logic";

interface NeighbourCardProps {
  neighbour: Neighbour;
  busy: boolean;
  onAct: (path: string, method: "POST" | "PATCH" | "DELETE", body?: object) => Promise<boolean>;
}

/** One paired Freehold: its key and account, what it may use here, work for it, and eviction. */
export function NeighbourCard({ neighbour, busy, onAct }: NeighbourCardProps) {
  const [prompt, setPrompt] = useState("");
  /** What was chosen and is not stored yet. */
  const [chosen, setChosen] = useState<Neighbour["grants"] | null>(null);
  const stored = neighbour.grants.join();
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is stored now is shown, whatever was chosen before
  useEffect(() => setChosen(null), [stored]);
  const path = `/v1/mesh/neighbours/${encodeURIComponent(neighbour.name)}`;

  const send = async (event: FormEvent) => {
    event.preventDefault();
    if (await onAct("/v1/mesh/work", "POST", { neighbour: neighbour.name, prompt })) setPrompt("");
  };

  const change = async (grants: Neighbour["grants"]) => {
    setChosen(grants);
    if (!(await onAct(path, "PATCH", { grants }))) setChosen(null);
  };

  return (
    <li className="card">
      <h3>{visibleText(neighbour.name)}</h3>
      <p className="mesh-key">
        <code>{neighbour.npub}</code>
      </p>
      <p className={neighbour.proof === "refuted" ? "problem-text" : "quiet"}>
        {visibleText(accountText(neighbour.did, neighbour.proof))}
      </p>
      <p className="quiet">It gives you: {grantsText(neighbour.given)}</p>
      {neighbour.seen !== null && (
        <p className="quiet">Last heard {formatDateTime(Date.parse(neighbour.seen) / 1000)}</p>
      )}
      <GrantChoice
        legend="It may, here:"
        grants={chosen ?? neighbour.grants}
        disabled={busy}
        onChange={(grants) => void change(grants)}
      />
      {neighbour.given.includes("work") && (
        <form onSubmit={(event) => void send(event)}>
          <AgentCards neighbour={neighbour.name} />
          <label>
            Work for an agent of {visibleText(neighbour.name)}
            <textarea
              rows={3}
              value={prompt}
              placeholder="Describe a task"
              onChange={(event) => setPrompt(event.target.value)}
            />
          </label>
          <button type="submit" disabled={busy || prompt.trim() === ""}>
            Send work
          </button>
        </form>
      )}
      <div className="mesh-actions">
        <ConfirmButton
          label="Evict"
          confirmLabel="Evict? It must pair again"
          spoken={`Evict ${neighbour.name}`}
          disabled={busy}
          onConfirm={() => void onAct(path, "DELETE")}
        />
      </div>
    </li>
  );
}
