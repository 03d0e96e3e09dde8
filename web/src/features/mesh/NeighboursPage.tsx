import { useState } from "react";
import type { Mesh, Neighbour, SentWork } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { useResource } from "../../data/resource";
import { CopyButton } from "../../ui/CopyButton";
import { Notice } from "../../ui/Notice";
import { visibleText } from "../../ui/visibleText";
import { AccountRecord } from "./AccountRecord";
import { ClientList } from "./ClientList";
import { NeighbourCard } from "./NeighbourCard";
import { PairingForm } from "./PairingForm";
import { SentWorkList } from "./SentWorkList";
import "./mesh.css";

const LIVE = { topic: "timeline", durable: true, delay: 200 };

/** Other Freeholds: pair with them, see what each may use, send work to them, and evict them. */
export default function NeighboursPage() {
  const mesh = useResource<Mesh>("/v1/mesh", LIVE);
  const neighbours = useResource<Neighbour[]>("/v1/mesh/neighbours", LIVE);
  const work = useResource<SentWork[]>("/v1/mesh/work", LIVE);
  const [failure, setFailure] = useState<Problem | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  const problem = failure ?? mesh.problem ?? neighbours.problem ?? work.problem;

  function reload() {
    setFailure(null);
    for (const one of [mesh, neighbours, work]) one.reload();
  }

  /** Whether it has been done. */
  async function act(path: string, method: "POST" | "PATCH" | "DELETE", body?: object): Promise<boolean> {
    setIsBusy(true);
    try {
      await request(path, body === undefined ? { method } : { method, body });
      reload();
      return true;
    } catch (error) {
      setFailure(problemOf(error));
      return false;
    } finally {
      setIsBusy(false);
    }
  }

  return (
    <div className="column mesh">
      <header className="head">
        <h1>Neighbours</h1>
        <p className="quiet">Other Freeholds that this one knows, and what each may use.</p>
      </header>
      {problem?.code === "mesh.disabled" ? (
        <p className="empty">
          Neighbours are off. To turn them on, set <code>mode = "peer"</code> in <code>[mesh]</code> of freehold.toml
          and restart Freehold.
        </p>
      ) : (
        problem && <Notice problem={problem} action={{ label: "Try again", run: reload }} />
      )}
      {mesh.value === null && !problem && (
        <p className="quiet" role="status">
          Loading…
        </p>
      )}
      {mesh.value && <OwnIdentity mesh={mesh.value} />}
      {mesh.value && <PairingForm onPaired={reload} />}
      {neighbours.value && (
        <section aria-labelledby="mesh-paired">
          <h2 id="mesh-paired">Paired</h2>
          {neighbours.value.length === 0 && <p className="empty">No neighbour yet. Make a code, or enter one.</p>}
          <ul className="mesh-list">
            {neighbours.value.map((neighbour) => (
              <NeighbourCard key={neighbour.npub} neighbour={neighbour} busy={isBusy} onAct={act} />
            ))}
          </ul>
        </section>
      )}
      {mesh.value?.mode === "host" && <ClientList />}
      {work.value && work.value.length > 0 && <SentWorkList work={work.value} busy={isBusy} onAct={act} />}
    </div>
  );
}

function OwnIdentity({ mesh }: { mesh: Mesh }) {
  return (
    <section className="card" aria-labelledby="mesh-own">
      <h2 id="mesh-own">This Freehold</h2>
      <p>
        {mesh.name} {mesh.did !== null && <span className="quiet">{mesh.did}</span>}
      </p>
      <p className="mesh-key">
        <code>{mesh.npub}</code> <CopyButton text={mesh.npub} label="Copy the key" />
      </p>
      {mesh.did !== null && <AccountRecord />}
      {mesh.registration && (
        <p>
          Host {mesh.registration.host}: {mesh.registration.state}
          {mesh.registration.error !== null && (
            <span className="problem-text"> {visibleText(mesh.registration.error)}</span>
          )}
        </p>
      )}
      {mesh.relays.map((relay) => (
        <p key={relay.url}>
          Relay {relay.url}: {relay.state === "ok" ? "connected" : "away"}
          {relay.error !== null && <span className="problem-text"> {visibleText(relay.error)}</span>}
          {relay.waiting > 0 && <span className="quiet"> {relay.waiting} events wait</span>}
        </p>
      ))}
    </section>
  );
}
