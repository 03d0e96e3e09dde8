import { Menu } from "@base-ui/react/menu";
import type { ReactNode } from "react";
import { Icon, type IconName } from "./Icon";

export interface MenuEntry {
  label: string;
  icon?: IconName;
  danger?: boolean;
  /** Drawn with a line above it. */
  apart?: boolean;
  run: () => void;
}

/** A button that opens a list of things to do. */
export function ActionMenu({ label, entries, className = "plain-button", children }: { label: string; entries: readonly MenuEntry[]; className?: string; children?: ReactNode }) {
  return (
    <Menu.Root modal={false}>
      <Menu.Trigger className={className} aria-label={label} title={label}>
        {children ?? <Icon name="more" size={18} />}
      </Menu.Trigger>
      <Menu.Portal>
        <Menu.Positioner className="menu-place" sideOffset={4} align="end">
          <Menu.Popup className="menu">
            {entries.map((entry) => (
              <Menu.Item key={entry.label} className="menu-item" data-danger={entry.danger || undefined} data-apart={entry.apart || undefined} onClick={entry.run}>
                {entry.icon && <Icon name={entry.icon} size={16} />}
                {entry.label}
              </Menu.Item>
            ))}
          </Menu.Popup>
        </Menu.Positioner>
      </Menu.Portal>
    </Menu.Root>
  );
}
