import { useMemo, useState } from "react";
import { Dialog } from "../ui/Dialog";
import { Icon } from "../ui/Icon";
import { type Command, searchCommands } from "./commandSearch.logic";

/** Finds a command by its name and runs it. */
export function CommandPalette({ commands, onClose }: { commands: readonly Command[]; onClose: () => void }) {
  const [typed, setTyped] = useState("");
  const [position, setPosition] = useState(0);
  const found = useMemo(() => searchCommands(commands, typed), [commands, typed]);
  const chosen = found[Math.min(position, found.length - 1)];

  function run(command: Command | undefined) {
    if (command === undefined) return;
    onClose();
    command.run();
  }

  return (
    <Dialog title="Commands" onClose={onClose} bare>
      <div className="app-palette-field">
        <Icon name="search" />
        <input
          autoFocus
          role="combobox"
          aria-label="Command"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant={chosen && `command-${chosen.id}`}
          placeholder="Type a command or the name of a page"
          value={typed}
          onChange={(event) => {
            setTyped(event.target.value);
            setPosition(0);
          }}
          onKeyDown={(event) => {
            const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
            if (step !== 0 && found.length > 0) {
              event.preventDefault();
              setPosition((Math.min(position, found.length - 1) + step + found.length) % found.length);
            } else if (event.key === "Enter") {
              event.preventDefault();
              run(chosen);
            }
          }}
        />
      </div>
      <ul id="palette-list" className="app-palette-list" role="listbox" aria-label="Commands">
        {found.map((command) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field above handles the keys
          <li
            key={command.id}
            id={`command-${command.id}`}
            role="option"
            aria-selected={command === chosen}
            onMouseMove={() => setPosition(found.indexOf(command))}
            onClick={() => run(command)}
          >
            <span>{command.title}</span>
            <span className="quiet">{command.group}</span>
          </li>
        ))}
        {found.length === 0 && <li className="quiet">No command matches.</li>}
      </ul>
    </Dialog>
  );
}
