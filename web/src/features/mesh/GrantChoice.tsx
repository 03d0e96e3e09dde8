import type { Neighbour } from "../../client/api";
import { GRANTS, toggled } from "./neighbours.logic";

interface GrantChoiceProps {
  legend: string;
  grants: Neighbour["grants"];
  onChange: (grants: Neighbour["grants"]) => void;
  disabled?: boolean;
}

/** What a neighbour may use here. */
export function GrantChoice({ legend, grants, onChange, disabled = false }: GrantChoiceProps) {
  return (
    <fieldset className="mesh-grants" disabled={disabled}>
      <legend>{legend}</legend>
      {GRANTS.map((grant) => (
        <label key={grant.name} className="radio">
          <input
            type="checkbox"
            checked={grants.includes(grant.name)}
            onChange={() => onChange(toggled(grants, grant.name))}
          />
          {grant.label}
        </label>
      ))}
    </fieldset>
  );
}
