import type { FleetComputer, FleetNode } from "../../client/api";
import { ConfirmButton } from "../../ui/ConfirmButton";
import { sessionPath } from "../../ui/route";
import { visibleText } from "../../ui/visibleText";
import { labelsOf, othersOf, roomOf } from "./fleet.logic";

interface NodeCardProps {
  node: FleetNode;
  computers: readonly FleetComputer[];
  busy: boolean;
  onDrain: (draining: boolean) => void;
  onRemove: () => void;
}

const STATES: Record<FleetNode["state"], string> = { ready: "Ready", draining: "Draining", away: "Away" };
const WORK: Record<FleetComputer["state"], string> = {
  waiting: "Waiting",
  copying: "Copying files",
  starting: "Starting",
  running: "Running",
  ended: "Ended",
};

/** One machine of the fleet: what of it is in use, the computers on it, and what the owner decides about it. */
export function NodeCard({ node, computers, busy, onDrain, onRemove }: NodeCardProps) {
  const { name } = node;
  const isDraining = node.state === "draining";
  return (
    <li className="card fleet-node">
      <h3>{name}</h3>
      <p className="quiet">
        {STATES[node.state]} · {node.address} · {labelsOf(node)}
      </p>
      {node.trouble !== "" && <p className="problem-text">{visibleText(node.trouble)}</p>}
      <div className="fleet-room">
        {roomOf(node).map((room) => (
          <div key={room.label}>
            {room.label}: {room.text}
            <meter aria-label={room.label} min={0} max={room.total} value={room.used} />
          </div>
        ))}
      </div>
      <ComputerList node={node} computers={computers} />
      <div className="answers">
        <button
          type="button"
          className="small"
          disabled={busy}
          aria-label={isDraining ? `Resume ${name}` : `Drain ${name}`}
          onClick={() => onDrain(!isDraining)}
        >
          {isDraining ? "Resume" : "Drain"}
        </button>
        <ConfirmButton
          label="Remove"
          spoken={`Remove ${name}`}
          confirmLabel={node.computers > 0 ? "Remove and lose its computers" : "Remove this node"}
          disabled={busy}
          onConfirm={onRemove}
        />
      </div>
    </li>
  );
}

function ComputerList({ node, computers }: Pick<NodeCardProps, "node" | "computers">) {
  const others = othersOf(computers.length, node);
  return (
    <>
      {computers.length > 0 && (
        <ul className="fleet-computers">
          {computers.map((computer) => (
            <li key={computer.id}>
              <ComputerName computer={computer} /> <span className="quiet">{WORK[computer.state]}</span>
            </li>
          ))}
        </ul>
      )}
      {others !== null && <p className="quiet">{others}</p>}
    </>
  );
}

/** With a link to the conversation whose agent works in it. */
export function ComputerName({ computer }: { computer: Pick<FleetComputer, "name" | "session"> }) {
  const name = visibleText(computer.name);
  return computer.session === null ? name : <a href={sessionPath(computer.session)}>{name}</a>;
}
