import { type KeyboardEvent, type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { ErrorBoundary } from "../../ui/ErrorBoundary";
import { Icon } from "../../ui/Icon";
import { isDialogOpen } from "../../ui/keyboard";
import { lazyComponent } from "../../ui/lazyComponent";
import { PANE_CONTENT, PaneContext, PaneSessionContext } from "../../ui/pane";
import { go, sessionPath } from "../../ui/route";
import { PaneEdge } from "./PaneEdge";
import { useSheet } from "./useSheet";
import { useWideScreen, useWorkbenchLayout } from "./useWorkbenchLayout";
import { fitShare, sessionAt, TABS, tabAfterKey, tabAt, type WorkbenchTab } from "./workbench.logic";
import { WorkbenchContext } from "./workbenchContext";
import "./workbench.css";

const PAGES = {
  changes: lazyComponent(() => import("../diff/DiffPage")),
  preview: lazyComponent(() => import("../preview/PreviewPage")),
  files: lazyComponent(() => import("../files/FilesPage")),
  git: lazyComponent(() => import("../git/GitPage")),
  terminal: lazyComponent(() => import("../terminal/TerminalPage")),
} as const;

interface WorkbenchFrameProps {
  session: string;
  /** Where its agent works, below the workspace. */
  folder: string;
  /** The address of the changes that are shown until the owner chooses others. */
  changes: string;
  /** The plan of the agent. */
  plan: ReactNode;
  /** What shows another session. The address of the pane names it. */
  other: ReactNode;
  /** The conversation. */
  children: ReactNode;
}

/** A conversation, and a pane beside it. On a small screen the pane covers the conversation. */
export function WorkbenchFrame({ session, folder, changes, plan, other, children }: WorkbenchFrameProps) {
  const frame = useRef<HTMLDivElement>(null);
  const isWide = useWideScreen();
  const { layout, change } = useWorkbenchLayout();
  const [isSheet, setSheet] = useSheet(session);
  const [chosen, setChosen] = useChosenAddresses(session);
  const isOpen = isWide ? layout.isOpen : isSheet;
  const { tab } = layout;

  const setOpen = useCallback(
    (open: boolean) => {
      if (isWide) change({ isOpen: open });
      else setSheet(open);
    },
    [isWide, change, setSheet],
  );
  const showInPane = useCallback(
    (to: string) => {
      const shown = tabAt(to);
      if (shown === null) {
        go(to);
        return;
      }
      if (shown === "session") change({ tab: shown, beside: sessionAt(to) });
      else {
        setChosen(shown, to);
        change({ tab: shown });
      }
      setOpen(true);
    },
    [change, setChosen, setOpen],
  );
  const toggle = useCallback(() => setOpen(!isOpen), [setOpen, isOpen]);
  useToggleKey(frame, isOpen, toggle);

  const shared = useMemo(() => ({ show: showInPane, isOpen, toggle }), [showInPane, isOpen, toggle]);
  const ownAddresses: Partial<Record<WorkbenchTab, string>> = {
    changes,
    session: layout.beside === null ? "/sessions" : sessionPath(layout.beside),
    ...(folder === "" ? {} : { git: `/git?folder=${encodeURIComponent(folder)}` }),
  };
  const address = chosen[tab] ?? ownAddresses[tab] ?? TABS.find((one) => one.tab === tab)?.path ?? "";
  const pane = useMemo(() => ({ address, go: showInPane }), [address, showInPane]);
  const inPane = useMemo(() => ({ show: showInPane, isOpen: true, toggle: null }), [showInPane]);
  const label = TABS.find((one) => one.tab === tab)?.label ?? "";
  // The same element, so that a page is not drawn again with the conversation.
  const page = useMemo(() => {
    const Page = tab === "plan" || tab === "session" ? null : PAGES[tab];
    return Page && <Page />;
  }, [tab]);
  const share = fitShare(layout.share, frame.current?.clientWidth ?? innerWidth);
  return (
    <div ref={frame} className="workbench" data-pane={isOpen ? (isWide ? "beside" : "sheet") : undefined}>
      <WorkbenchContext value={shared}>{children}</WorkbenchContext>
      {isOpen && isWide && (
        <PaneEdge
          frame={frame}
          share={share}
          onResize={(next, options) => change({ share: next }, options)}
          onCollapse={() => setOpen(false)}
        />
      )}
      {(isOpen || isWide) && (
        <aside
          className="workbench-pane"
          aria-label="Beside the conversation"
          style={isOpen && isWide ? { flexBasis: `${share * 100}%` } : undefined}
        >
          <TabList
            tab={isOpen ? tab : null}
            onChoose={(next) => {
              if (isOpen && next === tab) setOpen(false);
              else {
                change({ tab: next });
                setOpen(true);
              }
            }}
            onMove={(next) => {
              change({ tab: next });
              setOpen(true);
            }}
            onClose={isWide ? null : () => setOpen(false)}
          />
          {isOpen && (
            <div className={PANE_CONTENT} role="tabpanel" aria-label={label} id="workbench-panel">
              <ErrorBoundary key={tab} name={label} content={pane}>
                <PaneContext value={pane}>
                  <PaneSessionContext value={session}>
                    <WorkbenchContext value={inPane}>{page ?? (tab === "plan" ? plan : other)}</WorkbenchContext>
                  </PaneSessionContext>
                </PaneContext>
              </ErrorBoundary>
            </div>
          )}
        </aside>
      )}
    </div>
  );
}

type Addresses = Partial<Record<WorkbenchTab, string>>;
const NONE: Addresses = {};

/** The addresses that the owner has chosen beside a session, by tab. Those of other sessions are remembered. */
function useChosenAddresses(session: string): [Addresses, (tab: WorkbenchTab, address: string) => void] {
  const [all, setAll] = useState<Readonly<Record<string, Addresses>>>({});
  const shown = useRef(session);
  useEffect(() => {
    shown.current = session;
  });
  const choose = useCallback((tab: WorkbenchTab, address: string) => {
    const of = shown.current;
    setAll((held) => ({ ...held, [of]: { ...held[of], [tab]: address } }));
  }, []);
  return [all[session] ?? NONE, choose];
}

interface TabListProps {
  /** The tab that is shown; null while the pane is closed. */
  tab: WorkbenchTab | null;
  onChoose: (tab: WorkbenchTab) => void;
  onMove: (tab: WorkbenchTab) => void;
  onClose: (() => void) | null;
}

function TabList({ tab, onChoose, onMove, onClose }: TabListProps) {
  function press(event: KeyboardEvent<HTMLElement>, at: WorkbenchTab) {
    const next = tabAfterKey(event.key, at);
    if (next === null) return;
    event.preventDefault();
    onMove(next);
    event.currentTarget.parentElement?.querySelector<HTMLElement>(`[data-tab=${next}]`)?.focus();
  }
  return (
    <div className="workbench-rail">
      <div className="workbench-tabs" role="tablist" aria-label="Beside the conversation" aria-orientation="vertical">
        {TABS.map((one) => (
          <button
            key={one.tab}
            type="button"
            role="tab"
            className="plain-button"
            data-tab={one.tab}
            aria-selected={one.tab === tab}
            aria-controls={one.tab === tab ? "workbench-panel" : undefined}
            tabIndex={one.tab === (tab ?? TABS[0]?.tab) ? 0 : -1}
            aria-label={one.label}
            title={one.tab === tab ? `Close ${one.label}` : `${one.label} (Ctrl J opens and closes)`}
            onClick={() => onChoose(one.tab)}
            onKeyDown={(event) => press(event, one.tab)}
          >
            <Icon name={one.icon} />
          </button>
        ))}
      </div>
      {onClose && (
        <button type="button" className="plain-button" aria-label="Close" onClick={onClose}>
          <Icon name="close" />
        </button>
      )}
    </div>
  );
}

/** Ctrl J opens and closes the pane, and moves the focus into it or back to the message. In a terminal it is a newline. */
function useToggleKey(frame: { current: HTMLElement | null }, isOpen: boolean, toggle: () => void): void {
  const latest = useRef({ isOpen, toggle });
  useEffect(() => {
    latest.current = { isOpen, toggle };
  });
  useEffect(() => {
    function handle(event: globalThis.KeyboardEvent) {
      if (event.key.toLowerCase() !== "j" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey)
        return;
      const target = event.composedPath()[0] ?? null;
      const isTerminal = target instanceof Element && target.closest("[data-keys='terminal']") !== null;
      if (event.defaultPrevented || isDialogOpen() || (isTerminal && event.ctrlKey)) return;
      event.preventDefault();
      const wasOpen = latest.current.isOpen;
      latest.current.toggle();
      requestAnimationFrame(() =>
        frame.current
          ?.querySelector<HTMLElement>(wasOpen ? "textarea" : ".workbench-rail [role=tab][tabindex='0']")
          ?.focus(),
      );
    }
    window.addEventListener("keydown", handle);
    return () => window.removeEventListener("keydown", handle);
  }, [frame]);
}
