import type { AgentCards as Cards } from "../../client/api";
import { useResource } from "../../data/resource";
import { visibleText } from "../../ui/visibleText";

/** The agents of a neighbour that take work, as it describes them: its words are data. */
export function AgentCards({ neighbour }: { neighbour: string }) {
  const cards = useResource<Cards>(`/v1/mesh/neighbours/${encodeURIComponent(neighbour)}/agents`);
  if (cards.problem)
    return <p className="quiet">Its agents cannot be asked for now: {visibleText(cards.problem.message)}</p>;
  return (
    <ul className="mesh-agents" aria-label={`Agents of ${neighbour}`}>
      {cards.value?.agents.map((one) => (
        <li key={one.name}>
          <strong>{visibleText(one.name)}</strong> {visibleText(one.skills.map((skill) => skill.description).join(" "))}
        </li>
      ))}
    </ul>
  );
}
