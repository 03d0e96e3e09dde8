import type { MountState } from "../../client/api";
import { wordOf } from "../../ui/words";
import { mountFacts, mountTone } from "./mounts.logic";

/** What the computer sees beside its workspace, and whether it works. */
export function Mounts({ mounts }: { mounts: readonly MountState[] }) {
  return (
    <section aria-labelledby="mounts">
      <h3 id="mounts">Mounts</h3>
      {mounts.length === 0 && <p className="empty">The computer sees nothing beside its workspace.</p>}
      {mounts.length > 0 && (
        <ul className="rows">
          {mounts.map((mount) => (
            <li key={mount.target} className="settings-kept" data-mount={mount.target}>
              <strong>{mount.target}</strong>{" "}
              <span className="chip" data-tone={mountTone(mount)}>
                {wordOf(mount.state)}
              </span>
              <p className="quiet">{mountFacts(mount)}</p>
              {mount.words !== "" && <p className="problem-text">{mount.words}</p>}
            </li>
          ))}
        </ul>
      )}
      <p className="quiet small-print">
        Changes in mounts cannot be undone: history does not cover them. Add mounts with{" "}
        <code>[[computer.mounts]]</code> in freehold.toml.
      </p>
    </section>
  );
}
