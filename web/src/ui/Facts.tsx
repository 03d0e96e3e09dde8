import type { ReactNode } from "react";

/** A list of names with their values. */
export function Facts({
  facts,
  className = "",
}: {
  facts: readonly (readonly [name: string, value: ReactNode])[];
  className?: string;
}) {
  return (
    <dl className={`facts ${className}`.trim()}>
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
