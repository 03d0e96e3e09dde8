import { useEffect, useMemo, useRef, useState } from "react";
import { Dialog } from "../ui/Dialog";
import { formatNumber } from "../ui/format";
import { Icon } from "../ui/Icon";
import { visibleText } from "../ui/visibleText";
import { type Command, ROWS, searchCommands } from "./commandSearch.logic";
import { useFoundText } from "./useFoundText";
import { usePaletteItems } from "./usePaletteItems";

const MORE = "show-more";

/** Finds by name whatever can be opened or done, and what was said or written anywhere. */
export function CommandPalette({ commands, onClose }: { commands: readonly Command[]; onClose: () => void }) {
  const [typed, setTyped] = useState("");
  const [position, setPosition] = useState(0);
  const [rows, setRows] = useState(ROWS);
  const list = useRef<HTMLUListElement>(null);
  const items = usePaletteItems();
  const all = useMemo(() => [...commands, ...items], [commands, items]);
  const named = useMemo(() => (typed.trim() === "" ? commands : searchCommands(all, typed)), [commands, all, typed]);
  const text = useFoundText(typed);
  // Commands alone are all drawn. Files may be many thousands.
  const drawn = typed.trim() === "" ? named : named.slice(0, rows);
  const hidden = named.length - drawn.length;
  const more: readonly Command[] =
    hidden === 0
      ? []
      : [
          {
            id: MORE,
            title: `Show more: ${formatNumber(hidden)} are left`,
            group: "Or type more of the name",
            run: () => setRows(rows + ROWS),
          },
        ];
  const found = [...drawn, ...more, ...text.items];
  const chosen = found[Math.min(position, found.length - 1)];

  useEffect(() => {
    if (position > 0) list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
    else if (list.current !== null) list.current.scrollTop = 0;
  }, [position]);

  function run(command: Command | undefined) {
    if (command === undefined) return;
    if (command.id !== MORE) onClose();
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
          placeholder="Find a command, a name or a text"
          value={typed}
          onChange={(event) => {
            setTyped(event.target.value);
            setPosition(0);
            setRows(ROWS);
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
      <ul ref={list} id="palette-list" className="app-palette-list" role="listbox" aria-label="Commands">
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
            <span>{visibleText(command.title)}</span>
            <span className="quiet">{command.group}</span>
          </li>
        ))}
        {found.length === 0 && !text.isBusy && <li className="quiet">Nothing matches.</li>}
      </ul>
      <p className="app-palette-note quiet" role="status">
        {text.isBusy ? "Searching conversations and files…" : ""}
      </p>
    </Dialog>
  );
}
