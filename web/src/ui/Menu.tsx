import { type KeyboardEvent, type ReactNode, useRef, useState } from "react";
import { Icon, type IconName } from "./Icon";
import { Popup } from "./Popup";

export interface MenuEntry {
  label: string;
  icon?: IconName;
  danger?: boolean;
  /** Draws a line above it. */
  separated?: boolean;
  run: () => void;
}

/** A button that opens a list of actions. */
export function ActionMenu({
  label,
  entries,
  className = "plain-button",
  children,
}: {
  label: string;
  entries: readonly MenuEntry[];
  className?: string;
  children?: ReactNode;
}) {
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  return (
    <>
      <button
        ref={button}
        type="button"
        className={className}
        aria-label={label}
        title={label}
        aria-haspopup="menu"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
        onKeyDown={(event) => {
          if (event.key !== "ArrowDown") return;
          event.preventDefault();
          setOpen(true);
        }}
      >
        {children ?? <Icon name="more" size={18} />}
      </button>
      {open && (
        <Popup
          anchor={button}
          role="menu"
          label={label}
          className="menu"
          side="below"
          align="end"
          onClose={() => setOpen(false)}
        >
          {entries.map((entry) => (
            <button
              key={entry.label}
              type="button"
              role="menuitem"
              tabIndex={-1}
              className="menu-item"
              data-danger={entry.danger || undefined}
              data-separated={entry.separated || undefined}
              onKeyDown={(event) => {
                if (event.key === "Tab") setOpen(false);
                else moveFocus(event);
              }}
              onClick={() => {
                setOpen(false);
                button.current?.focus();
                entry.run();
              }}
            >
              {entry.icon && <Icon name={entry.icon} size={16} />}
              {entry.label}
            </button>
          ))}
        </Popup>
      )}
    </>
  );
}

/** Arrows move in a circle, Home and End go to the ends, a letter goes to the next entry that begins with it. */
function moveFocus(event: KeyboardEvent<HTMLButtonElement>) {
  const items = [...(event.currentTarget.parentElement?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
  const at = items.indexOf(event.currentTarget);
  const round = (index: number) => items[(index + items.length) % items.length];
  const begins = (item: HTMLElement) => item.textContent.trim().toLowerCase().startsWith(event.key.toLowerCase());
  const next =
    event.key === "ArrowDown"
      ? round(at + 1)
      : event.key === "ArrowUp"
        ? round(at - 1)
        : event.key === "Home"
          ? items[0]
          : event.key === "End"
            ? items.at(-1)
            : /^\p{L}$/u.test(event.key) && !event.ctrlKey && !event.metaKey
              ? [...items.slice(at + 1), ...items.slice(0, at + 1)].find(begins)
              : undefined;
  if (next === undefined) return;
  event.preventDefault();
  event.stopPropagation();
  next.focus();
}
