import { type ReactNode, useState } from "react";
import { useConnection } from "../data/connection";
import { Dialog } from "../ui/Dialog";
import { Icon } from "../ui/Icon";
import { Logo } from "../ui/Logo";
import type { PageDeclaration, PageGroup } from "../ui/page";
import { followLink } from "../ui/route";
import { groupsToOffer, pageGroup, pagesToOffer, readOpenGroups, toggleGroup } from "./navigation.logic";
import { componentAt } from "./pageComponents";
import { PAGES } from "./pages";

interface NavigationProps {
  page: PageDeclaration | undefined;
  handle: string | null;
  /** The slots and features that are on. */
  on: readonly string[];
  /** How many requests wait on a page, by its path. */
  badges: Record<string, number>;
  onOpenPalette: () => void;
}

const OPEN_GROUPS_KEY = "freehold.navigation.open";

/** The list of pages: a sidebar, and a bar at the bottom of a phone. */
export function Navigation({ page: current, handle, on, badges, onOpenPalette }: NavigationProps) {
  const isMac = /Mac|iPhone|iPad/.test(navigator.platform);
  const [showsMore, setShowsMore] = useState(false);
  const [open, setOpen] = useState(() => readOpenGroups(localStorage.getItem(OPEN_GROUPS_KEY)));
  const shown = pageGroup(current);
  const [opened, setOpened] = useState<PageGroup | null>(null);
  // The group of the page that is opened opens with it. It can be closed again.
  if (shown !== opened) {
    setOpened(shown);
    if (shown !== null && !open.includes(shown)) setOpen(toggleGroup(open, shown));
  }
  const pages = pagesToOffer(PAGES, on, current);
  const groups = groupsToOffer(pages);
  const end = pages.filter((page) => page.group === "end");
  const others = [...groups.flatMap((one) => one.pages), ...end];
  const toggle = (group: PageGroup) => {
    const next = toggleGroup(open, group);
    localStorage.setItem(OPEN_GROUPS_KEY, next.join(","));
    setOpen(next);
  };
  const link = (page: PageDeclaration, onFollow?: () => void) => (
    <PageLink
      key={page.path}
      page={page}
      isCurrent={page === current}
      badge={badges[page.path] ?? 0}
      onFollow={onFollow}
    />
  );
  return (
    <nav className="app-nav" aria-label="Pages">
      <div className="app-brand">
        <Logo size={26} />
        <span>Freehold</span>
      </div>
      {pages.filter((page) => page.group === "start").map((page) => link(page))}
      <button
        type="button"
        className="app-nav-more"
        data-current={current !== undefined && others.includes(current)}
        aria-haspopup="dialog"
        onClick={() => setShowsMore(true)}
      >
        <Icon name="more" />
        <span>More</span>
        <Badge count={waiting(others, badges)} />
      </button>
      <div className="app-nav-groups">
        {groups.map((one) => (
          <FoldedGroup
            key={one.group}
            group={one.group}
            isOpen={open.includes(one.group)}
            waiting={waiting(one.pages, badges)}
            onToggle={() => toggle(one.group)}
          >
            {one.pages.map((page) => link(page))}
          </FoldedGroup>
        ))}
        {end.map((page) => link(page))}
      </div>
      <div className="app-nav-foot">
        <button type="button" className="app-palette-button" onClick={onOpenPalette}>
          <Icon name="search" size={16} />
          <span>Commands</span>
          <kbd>{isMac ? "⌘K" : "Ctrl K"}</kbd>
        </button>
        <HelpLink page={current} />
        <ConnectionLabel handle={handle} />
      </div>
      {showsMore && (
        <Dialog title="More pages" onClose={() => setShowsMore(false)}>
          <div className="app-nav-sheet">
            {groups.map((one) => (
              <section key={one.group} aria-label={one.group}>
                <h3>{one.group}</h3>
                <div>{one.pages.map((page) => link(page, () => setShowsMore(false)))}</div>
              </section>
            ))}
            <section aria-label="Freehold">
              <h3>Freehold</h3>
              <div>
                {end.map((page) => link(page, () => setShowsMore(false)))}
                <HelpLink page={current} />
                <button
                  type="button"
                  className="app-nav-sheet-button"
                  onClick={() => {
                    setShowsMore(false);
                    onOpenPalette();
                  }}
                >
                  <Icon name="search" />
                  <span>Commands</span>
                </button>
              </div>
              <ConnectionLabel handle={handle} />
            </section>
          </div>
        </Dialog>
      )}
    </nav>
  );
}

/** How many requests wait on these pages. */
function waiting(pages: readonly PageDeclaration[], badges: Record<string, number>): number {
  return pages.reduce((sum, page) => sum + (badges[page.path] ?? 0), 0);
}

interface FoldedGroupProps {
  group: PageGroup;
  isOpen: boolean;
  waiting: number;
  onToggle: () => void;
  children: ReactNode;
}

/** A heading that shows and hides its pages. While they are hidden it says how many requests wait on them. */
function FoldedGroup({ group, isOpen, waiting: count, onToggle, children }: FoldedGroupProps) {
  return (
    <>
      <button type="button" className="app-nav-group" aria-expanded={isOpen} onClick={onToggle}>
        <Icon name="chevron" size={14} />
        <span>{group}</span>
        {!isOpen && <Badge count={count} />}
      </button>
      {isOpen && children}
    </>
  );
}

/** Opens the guide to the page that is shown. */
function HelpLink({ page }: { page: PageDeclaration | undefined }) {
  return (
    <a
      className="app-help"
      href={`/docs/${page?.guide ?? "index.html"}`}
      target="_blank"
      rel="noopener"
      title={page === undefined ? "The documentation" : `The guide to ${page.title}`}
    >
      <span aria-hidden="true">?</span>
      <span>Help</span>
    </a>
  );
}

interface PageLinkProps {
  page: PageDeclaration;
  isCurrent: boolean;
  badge: number;
  onFollow: (() => void) | undefined;
}

function PageLink({ page, isCurrent, badge, onFollow }: PageLinkProps) {
  const { load } = componentAt(page.path);
  return (
    <a
      href={page.path}
      aria-current={isCurrent ? "page" : undefined}
      title={`${page.title} (g ${page.key})`}
      onPointerEnter={load}
      onFocus={load}
      onClick={(event) => {
        onFollow?.();
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
