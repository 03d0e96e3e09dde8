import { useEffect, useMemo, useRef, useState, type ComponentType, type MouseEvent } from "react";
import type { Me } from "../../client/api";
import { request } from "../../client/http";
import { Dialog } from "../../ui/Dialog";
import { Icon } from "../../ui/Icon";
import { later } from "../../ui/later";
import { useToasts } from "../../ui/Toasts";
import { ApprovalsProvider, useApprovals } from "../approvals/approvals";
import { NeedsYou } from "../approvals/NeedsYou";
import { EgressProvider, useEgress } from "../network/egress";
import { Notifier } from "../notify/Notifier";
import { forgetEverything } from "../sessions/composer/draft";
import { RosterProvider } from "../sessions/roster";
import { StopBar, StopProvider, useStop } from "../stop/stop";
import { SECTIONS } from "../settings/sections";
import { ConnectionBar } from "./ConnectionBar";
import { useConnection } from "./live";
import { Palette } from "./Palette";
import type { Command } from "./palette.logic";
import { HOME, PLACES, placeOf } from "./places";
import { go, useRoute } from "./route";
import { isTyping, readKey } from "./shortcuts";
import { setTheme, THEMES } from "./theme";

const SessionsPage = later(() => import("../sessions/SessionsPage"));
const HistoryPage = later(() => import("../history/HistoryPage"));
const FilesPage = later(() => import("../files/FilesPage"));
const TerminalPage = later(() => import("../terminal/TerminalPage"));
const PreviewPage = later(() => import("../preview/PreviewPage"));
const NetworkPage = later(() => import("../network/NetworkPage"));
const ConnectPage = later(async () => ({ default: (await import("../connect/ConnectPage")).ConnectPage }));
const SettingsPage = later(() => import("../settings/SettingsPage"));

const AFTER_G = 1_500;

function pageOf(path: string): ComponentType<{ onSignedOut: () => void }> & { load: () => void } {
  switch (placeOf(path)?.path) {
    case "/sessions":
      return SessionsPage;
    case "/files":
      return FilesPage;
    case "/terminal":
      return TerminalPage;
    case "/preview":
      return PreviewPage;
    case "/network":
      return NetworkPage;
    case "/connect":
      return ConnectPage;
    case "/settings":
      return SettingsPage;
    default:
      return HistoryPage;
  }
}

/** What surrounds every page: the way around, the state of the connection and what waits for the owner. */
export function Shell({ me, onSignedOut }: { me: Me; onSignedOut: () => void }) {
  return (
    <EgressProvider>
      <RosterProvider>
        <ApprovalsProvider>
          <StopProvider>
            <Frame me={me} onSignedOut={onSignedOut} />
          </StopProvider>
        </ApprovalsProvider>
      </RosterProvider>
    </EgressProvider>
  );
}

function Frame({ me, onSignedOut }: { me: Me; onSignedOut: () => void }) {
  const { path } = useRoute();
  const toasts = useToasts();
  const [open, setOpen] = useState<"palette" | "help" | null>(null);
  const Page = pageOf(path);
  const here = placeOf(path);
  const asks = useApprovals().asks.length;
  const { value: stop, lift } = useStop();
  const stopped = stop?.stopped === true;
  const questions = useEgress().state?.pending.length ?? 0;
  const waitingAt: Record<string, number> = { "/sessions": asks, "/network": questions };

  useEffect(() => {
    if (path === "/") go(HOME, { replace: true });
  }, [path]);

  useKeys((act) => setOpen(act));

  const commands = useMemo<Command[]>(() => {
    async function run(what: () => Promise<unknown>, said: string) {
      try {
        await what();
        toasts.done(said);
      } catch (error) {
        toasts.failed(error);
      }
    }
    return [
      ...PLACES.map((place) => ({ id: place.path.slice(1), title: place.title, group: "Page", run: () => go(place.path) })),
      {
        id: "redo",
        title: "Redo what was undone",
        group: "History",
        run: () => void run(() => request("/v1/history/redo", { method: "POST", body: {} }), "Done again"),
      },
      { id: "undo", title: "Undo the last change…", group: "History", run: () => go("/history?undo=last") },
      { id: "stop", title: "Stop everything…", group: "Kill switch", run: () => go("/settings?stop=ask") },
      ...SECTIONS.map((section) => ({
        id: section.path.slice(1).replace("/", "-"),
        title: section.title,
        group: "Settings",
        run: () => go(section.path),
      })),
      { id: "compare", title: "Compare two states of the files", group: "History", run: () => go("/history/diff") },
      { id: "new-terminal", title: "New terminal", group: "Terminal", run: () => go("/terminal?new=1") },
      ...THEMES.map((theme) => ({ id: `theme-${theme}`, title: `Theme: ${theme}`, group: "Look", run: () => setTheme(theme) })),
      ...(stopped ? [{ id: "lift", title: "Let agents work again", group: "Kill switch", run: () => void lift() }] : []),
      { id: "keys", title: "Keyboard shortcuts", group: "Help", run: () => setOpen("help") },
      {
        id: "sign-out",
        title: "Sign out",
        group: "Account",
        run: () =>
          void request("/v1/sign-out", { method: "POST", body: {} })
            .then(forgetEverything)
            .then(onSignedOut)
            .catch(toasts.failed),
      },
    ];
  }, [toasts, onSignedOut, stopped, lift]);

  return (
    <div className="shell">
      <a className="skip" href="#page">
        Skip to the page
      </a>
      <nav className="nav" aria-label="Pages">
        <div className="brand">
          <img src="/icon.svg" alt="" width="26" height="26" />
          <span>Freehold</span>
        </div>
        {PLACES.map((place) => (
          <a
            key={place.path}
            href={place.path}
            aria-current={place === here ? "page" : undefined}
            title={`${place.title} (g ${place.key})`}
            onPointerEnter={pageOf(place.path).load}
            onFocus={pageOf(place.path).load}
            onClick={(event) => follow(event, place.path)}
          >
            <Icon name={place.icon} />
            <span>{place.title}</span>
            {(waitingAt[place.path] ?? 0) > 0 && (
              <span className="badge">
                {waitingAt[place.path]}
                <span className="unseen"> waiting</span>
              </span>
            )}
          </a>
        ))}
        <div className="nav-foot">
          <button className="nav-search" onClick={() => setOpen("palette")}>
            <Icon name="search" size={16} />
            <span>Commands</span>
            <kbd>{/Mac|iPhone|iPad/.test(navigator.platform) ? "⌘K" : "Ctrl K"}</kbd>
          </button>
          <State handle={me.handle} />
        </div>
      </nav>
      <div className="stage">
        <ConnectionBar recovery={me.recovery} />
        <StopBar />
        <NeedsYou />
        <main id="page" tabIndex={-1} data-page={here?.path.slice(1) ?? ""}>
          <Page onSignedOut={onSignedOut} />
        </main>
      </div>
      <Notifier asks={asks} questions={questions} place={here?.title} />
      {open === "palette" && <Palette commands={commands} onClose={() => setOpen(null)} />}
      {open === "help" && <Help onClose={() => setOpen(null)} />}
    </div>
  );
}

/** A link of ours is followed without loading the page anew; one opened in a new tab is the browser's. */
function follow(event: MouseEvent, path: string) {
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  go(path);
}

function State({ handle }: { handle: string | null }) {
  const state = useConnection();
  const words = { connecting: "Connecting", live: "Live", reconnecting: "Reconnecting", "signed-out": "Signed out" }[state];
  return (
    <p className="connection" data-state={state}>
      <span className="dot" aria-hidden="true" />
      {words}
      {handle && <span className="handle">@{handle}</span>}
    </p>
  );
}

function useKeys(open: (what: "palette" | "help") => void) {
  const latest = useRef(open);
  useEffect(() => {
    latest.current = open;
  });
  useEffect(() => {
    let gAt = -Infinity;
    function pressed(event: KeyboardEvent) {
      if (event.defaultPrevented || event.isComposing) return;
      const { key, ctrlKey, metaKey, altKey } = event;
      const target = event.composedPath()[0] ?? null;
      const busy = isTyping(target) || document.querySelector("dialog[open]") !== null;
      // Ctrl-K belongs to the shell in a terminal; Cmd-K does not.
      if (ctrlKey && target instanceof Element && target.closest("[data-keys='terminal']")) return;
      const act = readKey({ key, ctrlKey, metaKey, altKey, typing: busy }, event.timeStamp - gAt < AFTER_G);
      gAt = -Infinity;
      if (act === null) return;
      if (act.do === "wait") gAt = event.timeStamp;
      else if (act.do === "go") {
        const place = PLACES.find((one) => one.key === act.key);
        if (place === undefined) return;
        event.preventDefault();
        go(place.path);
      } else {
        event.preventDefault();
        latest.current(act.do);
      }
    }
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);
}

function Help({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <dl className="keys">
        {[
          ...PLACES.map((place) => [`g ${place.key}`, place.title]),
          ["Ctrl K", "Commands"],
          ["Ctrl S", "Save the open file"],
          ["n p", "Next and previous change of a comparison"],
          ["c", "Comment on its line"],
          ["Ctrl F", "Find in a terminal"],
          ["1–4", "Answer what the open session asks"],
          ["Alt 1–4", "The same while you type; on other pages, what the bar asks"],
          ["Ctrl Enter", "Steer: stop what the agent does and go first"],
          ["Esc", "Stop the agent, or close what is open"],
          ["?", "This sheet"],
        ].map(([keys = "", what]) => (
          <div key={keys}>
            <dt>
              {keys.split(" ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <div className="dialog-foot">
        <button onClick={onClose} autoFocus>
          Close
        </button>
      </div>
    </Dialog>
  );
}
