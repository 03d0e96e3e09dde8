import { useMemo, useState } from "react";
import { Dialog } from "../../ui/Dialog";
import { Icon } from "../../ui/Icon";
import { choose, type Command } from "./palette.logic";

/** Every command by its name. */
export function Palette({ commands, onClose }: { commands: readonly Command[]; onClose: () => void }) {
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const found = useMemo(() => choose(commands, typed), [commands, typed]);
  const chosen = found[Math.min(at, found.length - 1)];

  function run(command: Command | undefined) {
    if (command === undefined) return;
    onClose();
    command.run();
  }

  return (
    <Dialog title="Commands" onClose={onClose} bare>
      <div className="palette-field">
        <Icon name="search" />
        <input
          autoFocus
          role="combobox"
          aria-label="Command"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant={chosen && `command-${chosen.id}`}
          placeholder="Type a command or a page"
          value={typed}
          onChange={(event) => {
            setTyped(event.target.value);
            setAt(0);
          }}
          onKeyDown={(event) => {
            const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
            if (step !== 0 && found.length > 0) {
              event.preventDefault();
              setAt((Math.min(at, found.length - 1) + step + found.length) % found.length);
            } else if (event.key === "Enter") {
              event.preventDefault();
              run(chosen);
            }
          }}
        />
      </div>
      <ul id="palette-list" className="palette-list" role="listbox" aria-label="Commands">
        {found.map((command) => (
          <li
            key={command.id}
            id={`command-${command.id}`}
            role="option"
            aria-selected={command === chosen}
            onMouseMove={() => setAt(found.indexOf(command))}
            onClick={() => run(command)}
          >
            <span>{command.title}</span>
            <span className="quiet">{command.group}</span>
          </li>
        ))}
        {found.length === 0 && <li className="quiet">Nothing is called that.</li>}
      </ul>
    </Dialog>
  );
}
