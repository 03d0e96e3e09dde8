import { useConnection } from "../data/connection";
import { Icon } from "../ui/Icon";
import type { PageDeclaration } from "../ui/page";
import { followLink } from "../ui/route";
import { componentAt } from "./pageComponents";
import { PAGES } from "./pages";

interface NavigationProps {
  page: PageDeclaration | undefined;
  handle: string | null;
  /** How many requests wait on a page, by its path. */
  badges: Record<string, number>;
  onOpenPalette: () => void;
}

/** The list of pages: a sidebar, and a bar at the bottom of a phone. */
export function Navigation({ page: current, handle, badges, onOpenPalette }: NavigationProps) {
  const isMac = /Mac|iPhone|iPad/.test(navigator.platform);
  return (
    <nav className="app-nav" aria-label="Pages">
      <div className="app-brand">
        <img src="/icon.svg" alt="" width="26" height="26" />
        <span>Freehold</span>
      </div>
      {PAGES.map((page) => {
        const { load } = componentAt(page.path);
        const badge = badges[page.path] ?? 0;
        return (
          <a
            key={page.path}
            href={page.path}
            aria-current={page === current ? "page" : undefined}
            title={`${page.title} (g ${page.key})`}
            onPointerEnter={load}
            onFocus={load}
            onClick={(event) => followLink(event, page.path)}
          >
            <Icon name={page.icon} />
            <span>{page.title}</span>
            {badge > 0 && (
              <span className="app-badge">
                {badge}
                <span className="visually-hidden"> waiting</span>
              </span>
            )}
          </a>
        );
      })}
      <div className="app-nav-foot">
        <button type="button" className="app-palette-button" onClick={onOpenPalette}>
          <Icon name="search" size={16} />
          <span>Commands</span>
          <kbd>{isMac ? "⌘K" : "Ctrl K"}</kbd>
        </button>
        <ConnectionLabel handle={handle} />
      </div>
    </nav>
  );
}

const STATES = {
  connecting: "Connecting",
  live: "Live",
  reconnecting: "Reconnecting",
  "signed-out": "Signed out",
} as const;

function ConnectionLabel({ handle }: { handle: string | null }) {
  const state = useConnection();
  return (
    <p className="app-connection" data-state={state}>
      <span className="dot" aria-hidden="true" />
      {STATES[state]}
      {handle && <span className="app-handle">@{handle}</span>}
    </p>
  );
}
