import { useState } from "react";
import type { ChangedNode, DrainNode, Fleet, FleetNode, FleetWait } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { useResource } from "../../data/resource";
import { Notice } from "../../ui/Notice";
import { visibleText } from "../../ui/visibleText";
import { computersByNode, headlineOf, leftOutOf, movingMachines } from "./fleet.logic";
import { ComputerName, NodeCard } from "./NodeCard";
import "./fleet.css";

const POLL_INTERVAL = 3_000;

/** The machines of the fleet, the computers on each, and what waits for room. */
export default function FleetPage() {
  const { value, problem, reload } = useResource<Fleet>("/v1/fleet", { pollInterval: POLL_INTERVAL });
  const [failure, setFailure] = useState<Problem | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  const shown = failure ?? problem;

  function retry() {
    setFailure(null);
    reload();
  }

  async function act(work: () => Promise<ChangedNode>) {
    setIsBusy(true);
    try {
      await work();
      retry();
    } catch (error) {
      setFailure(problemOf(error));
    }
    setIsBusy(false);
  }

  function drain(node: FleetNode, draining: boolean) {
    const body: DrainNode = { draining };
    void act(() => request<ChangedNode>(nodePath(node), { method: "PATCH", body }));
  }

  function remove(node: FleetNode) {
    const query = node.computers > 0 ? "?lose=true" : "";
    void act(() => request<ChangedNode>(nodePath(node) + query, { method: "DELETE" }));
  }

  return (
    <div className="column fleet">
      <header className="head">
        <h1>Fleet</h1>
        <p className="quiet">Other machines that run computers for this Freehold.</p>
      </header>
      {shown && <Notice problem={shown} action={{ label: "Try again", run: retry }} />}
      {value === null && !shown && (
        <p className="quiet" role="status">
          Loading…
        </p>
      )}
      {value !== null && !value.enabled && (
        <p className="empty">
          The fleet is off. To turn it on, set <code>enabled</code> and <code>address</code> in <code>[fleet]</code> of
          freehold.toml, and restart Freehold.
        </p>
      )}
      {value?.enabled && (
        <div className={problem === null ? undefined : "stale"}>
          <FleetState fleet={value} />
          <section aria-labelledby="fleet-nodes">
            <h2 id="fleet-nodes">Nodes</h2>
            <NodeList fleet={value} busy={isBusy} onDrain={drain} onRemove={remove} />
          </section>
          <MachineList fleet={value} />
          {value.waiting_count > 0 && <WaitList waiting={value.waiting} total={value.waiting_count} />}
        </div>
      )}
    </div>
  );
}

function nodePath(node: FleetNode): string {
  return `/v1/fleet/nodes/${encodeURIComponent(node.name)}`;
}

function FleetState({ fleet }: { fleet: Fleet }) {
  if (fleet.nodes.length === 0 && fleet.trouble === "") return null;
  const headline = headlineOf(fleet);
  return (
    <section className="card fleet-headline" data-tone={headline.tone} aria-label="State">
      <p role="status">{visibleText(headline.text)}</p>
    </section>
  );
}

interface NodeListProps {
  fleet: Fleet;
  busy: boolean;
  onDrain: (node: FleetNode, draining: boolean) => void;
  onRemove: (node: FleetNode) => void;
}

function NodeList({ fleet, busy, onDrain, onRemove }: NodeListProps) {
  if (fleet.nodes.length === 0) {
    return (
      <p className="empty">
        No machine has joined. Run <code>freehold fleet up</code> on this machine to make a code.
      </p>
    );
  }
  const computers = computersByNode(fleet.computers);
  const leftOut = leftOutOf(fleet.computers.length, fleet.computer_count);
  return (
    <>
      <ul className="fleet-list">
        {fleet.nodes.map((node) => (
          <NodeCard
            key={node.name}
            node={node}
            computers={computers.get(node.name) ?? []}
            busy={busy}
            onDrain={(draining) => onDrain(node, draining)}
            onRemove={() => onRemove(node)}
          />
        ))}
      </ul>
      {leftOut !== null && <p className="quiet">{leftOut}</p>}
    </>
  );
}

function MachineList({ fleet }: { fleet: Fleet }) {
  const moving = movingMachines(fleet);
  if (moving.length === 0) return null;
  return (
    <section aria-labelledby="fleet-machines">
      <h2 id="fleet-machines">Machines that come or go</h2>
      <ul className="fleet-list">
        {moving.map(({ machine, text }) => (
          <li key={machine.name} className="card fleet-node">
            <h3>{machine.name}</h3>
            <p className="quiet">{visibleText(text)}</p>
          </li>
        ))}
      </ul>
    </section>
  );
}

function WaitList({ waiting, total }: { waiting: readonly FleetWait[]; total: number }) {
  const leftOut = leftOutOf(waiting.length, total);
  return (
    <section aria-labelledby="fleet-waiting">
      <h2 id="fleet-waiting">Waiting for room</h2>
      <ul className="fleet-list">
        {waiting.map((wait) => (
          <li key={wait.id} className="card fleet-node">
            <ComputerName computer={wait} />
            <p className="quiet">{visibleText(wait.reason)}</p>
          </li>
        ))}
      </ul>
      {leftOut !== null && <p className="quiet">{leftOut}</p>}
    </section>
  );
}
