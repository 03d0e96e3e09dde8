import type { MeshClient } from "../../client/api";
import { useResource } from "../../data/resource";
import { Notice } from "../../ui/Notice";
import { visibleText } from "../../ui/visibleText";
import { clientLines } from "./neighbours.logic";

/** The clients of this host, and what each tells of itself. One is evicted as the neighbour that it is. */
export function ClientList() {
  const clients = useResource<MeshClient[]>("/v1/mesh/clients", {
    topic: "timeline",
    durable: true,
    delay: 200,
    pollInterval: 30_000,
  });
  return (
    <section aria-labelledby="mesh-clients">
      <h2 id="mesh-clients">Clients</h2>
      {clients.problem && <Notice problem={clients.problem} action={{ label: "Try again", run: clients.reload }} />}
      {clients.value?.length === 0 && (
        <p className="empty">No client is registered. Let a neighbour register, and name this host there.</p>
      )}
      <ul className="mesh-list" aria-label="Registered clients">
        {clients.value?.map((one) => (
          <li key={one.npub} className="card">
            <h3>{visibleText(one.name)}</h3>
            <p className={one.health === "ok" ? "quiet" : "problem-text"}>{visibleText(one.health)}</p>
            {clientLines(one).map((line) => (
              <p key={line} className="quiet">
                {visibleText(line)}
              </p>
            ))}
          </li>
        ))}
      </ul>
    </section>
  );
}
