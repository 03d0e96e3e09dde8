import { useState } from "react";
import { useConnection } from "../data/connection";
import { Dialog } from "../ui/Dialog";
import { Icon } from "../ui/Icon";
import type { PageDeclaration } from "../ui/page";
import { followLink } from "../ui/route";
import { barLength, pagesToOffer } from "./navigation.logic";
import { componentAt } from "./pageComponents";
import { PAGES } from "./pages";

interface NavigationProps {
  page: PageDeclaration | undefined;
  handle: string | null;
  /** The slots that are on. */
  slots: readonly string[];
  /** How many requests wait on a page, by its path. */
  badges: Record<string, number>;
  onOpenPalette: () => void;
}

/** The list of pages: a sidebar, and a bar at the bottom of a phone. */
export function Navigation({ page: current, handle, slots, badges, onOpenPalette }: NavigationProps) {
  const isMac = /Mac|iPhone|iPad/.test(navigator.platform);
  const [showsMore, setShowsMore] = useState(false);
  const pages = pagesToOffer(PAGES, slots, current);
  const bar = barLength(pages.length);
  const others = pages.slice(bar);
  const link = (page: PageDeclaration, onFollow: () => void, className?: string) => (
    <PageLink
      key={page.path}
      page={page}
      isCurrent={page === current}
      badge={badges[page.path] ?? 0}
      className={className}
      onFollow={onFollow}
    />
  );
  return (
    <nav className="app-nav" aria-label="Pages">
      <div className="app-brand">
        <img src="/icon.svg" alt="" width="26" height="26" />
        <span>Freehold</span>
      </div>
      {pages.map((page, place) => link(page, () => undefined, place < bar ? undefined : "app-nav-beyond"))}
      {others.length > 0 && (
        <button
          type="button"
          className="app-nav-more"
          data-current={current !== undefined && others.includes(current)}
          aria-haspopup="dialog"
          onClick={() => setShowsMore(true)}
        >
          <Icon name="more" />
          <span>More</span>
          <Badge count={others.reduce((sum, page) => sum + (badges[page.path] ?? 0), 0)} />
        </button>
      )}
      <div className="app-nav-foot">
        <button type="button" className="app-palette-button" onClick={onOpenPalette}>
          <Icon name="search" size={16} />
          <span>Commands</span>
          <kbd>{isMac ? "⌘K" : "Ctrl K"}</kbd>
        </button>
        <ConnectionLabel handle={handle} />
      </div>
      {showsMore && (
        <Dialog title="More pages" onClose={() => setShowsMore(false)}>
          <div className="app-nav-sheet">{others.map((page) => link(page, () => setShowsMore(false)))}</div>
        </Dialog>
      )}
    </nav>
  );
}

interface PageLinkProps {
  page: PageDeclaration;
  isCurrent: boolean;
  badge: number;
  className: string | undefined;
  onFollow: () => void;
}

function PageLink({ page, isCurrent, badge, className, onFollow }: PageLinkProps) {
  const { load } = componentAt(page.path);
  return (
    <a
      href={page.path}
      className={className}
      aria-current={isCurrent ? "page" : undefined}
      title={`${page.title} (g ${page.key})`}
      onPointerEnter={load}
      onFocus={load}
      onClick={(event) => {
        onFollow();
        followLink(event, page.path);
      }}
    >
      <Icon name={page.icon} />
      <span>{page.title}</span>
      <Badge count={badge} />
    </a>
  );
}

function Badge({ count }: { count: number }) {
  if (count === 0) return null;
  return (
    <span className="app-badge">
      {count}
      <span className="visually-hidden"> waiting</span>
    </span>
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
