import { type KeyboardEvent, useCallback, useEffect, useRef, useState } from "react";
import type { TerminalInfo } from "../../client/api";
import { request } from "../../client/http";
import { useResource } from "../../data/resource";
import { Dialog } from "../../ui/Dialog";
import { Icon } from "../../ui/Icon";
import { lazyComponent } from "../../ui/lazyComponent";
import { Notice } from "../../ui/Notice";
import { useGo, useRoute } from "../../ui/route";
import { useToasts } from "../../ui/Toasts";
import { KeyRow } from "./KeyRow";
import { TerminalList } from "./TerminalList";
import type { TerminalHandle } from "./TerminalScreen";
import { chooseTerminal, nameTerminal, noteOpened, plainTitle, readNames, readOpened } from "./terminal.logic";
import "./terminal.css";

const TerminalScreen = lazyComponent(() => import("./TerminalScreen"));
const SHOWN_KEY = "freehold.terminal";

/** The terminals as tabs, or as a list without their screens. A terminal is connected when it is first shown. */
export default function TerminalPage() {
  const { query } = useRoute();
  const go = useGo();
  const [suspect] = useState(() => readOpened());
  const [listed, setListed] = useState(suspect !== null);
  const isListed = listed || query.get("list") !== null;
  const wantsNew = query.get("new") !== null;
  const { value: rows, problem, reload, set } = useResource<TerminalInfo[]>("/v1/terminals");
  const [wanted, setWanted] = useState(() => sessionStorage.getItem(SHOWN_KEY));
  const [titles, setTitles] = useState<Record<string, string>>({});
  const [ended, setEnded] = useState<ReadonlySet<string>>(new Set());
  const [names, setNames] = useState(() => readNames());
  const [renaming, setRenaming] = useState<{ id: string; name: string } | null>(null);
  const [link, setLink] = useState<string | null>(null);
  const [control, setControl] = useState(false);
  const screens = useRef(new Map<string, TerminalHandle>());
  const toasts = useToasts();
  const shown = rows === null || isListed ? null : chooseTerminal(rows, wanted);
  const connected = useConnected(shown);

  const choose = useCallback(
    (id: string) => {
      sessionStorage.setItem(SHOWN_KEY, id);
      setWanted(id);
      setListed(false);
      go("/terminal", { replace: true });
    },
    [go],
  );
  const opening = useRef(false);
  const latest = useRef(rows);
  useEffect(() => {
    latest.current = rows;
  });
  const open = useCallback(async () => {
    if (opening.current) return;
    opening.current = true;
    try {
      const made = await request<TerminalInfo>("/v1/terminals", { method: "POST", body: {} });
      set([...(latest.current ?? []), made]);
      choose(made.id);
    } catch (error) {
      toasts.failed(error);
    }
    opening.current = false;
  }, [choose, set, toasts]);
  const close = useCallback(
    async (id: string) => {
      try {
        await request(`/v1/terminals/${encodeURIComponent(id)}`, { method: "DELETE" });
      } catch (error) {
        if (!ended.has(id)) toasts.failed(error);
      }
      reload();
    },
    [ended, reload, toasts],
  );
  useEffect(() => {
    if (!wantsNew) return;
    go("/terminal", { replace: true });
    void open();
  }, [wantsNew, open, go]);

  const list = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the shown tab is scrolled into view
  useEffect(() => {
    list.current?.querySelector("[data-shown]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [shown, rows]);

  function moveTab(event: KeyboardEvent, at: number) {
    const to = at + (event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0);
    const next = rows?.[to];
    if (to === at || next === undefined) return;
    choose(next.id);
    event.currentTarget.closest("[role=tablist]")?.querySelectorAll<HTMLElement>("[role=tab]")[to]?.focus();
  }

  const nameOf = (row: TerminalInfo, index: number) => names[row.id] || titles[row.id] || `Terminal ${index + 1}`;
  return (
    <div className="terminal">
      <div className="terminal-tabs">
        <h1 className="visually-hidden">Terminal</h1>
        <div ref={list} className="terminal-list" role="tablist" aria-label="Terminals">
          {rows?.map((row, index) => {
            const title = nameOf(row, index);
            return (
              <span key={row.id} className="terminal-tab" data-shown={row.id === shown || undefined}>
                <button
                  role="tab"
                  aria-selected={row.id === shown}
                  aria-keyshortcuts="Delete F2"
                  title={`${title} (double-click or F2 to rename)`}
                  onClick={() => choose(row.id)}
                  onDoubleClick={() => setRenaming({ id: row.id, name: title })}
                  onKeyDown={(event) => {
                    if (event.key === "Delete") void close(row.id);
                    else if (event.key === "F2") setRenaming({ id: row.id, name: title });
                    else moveTab(event, index);
                  }}
                >
                  {title}
                  {(ended.has(row.id) || row.ended) && <span className="chip">ended</span>}
                </button>
                {/* A tab list may contain only tabs, so this button is for the pointer. Delete closes the tab by keyboard. */}
                <button
                  className="plain-button"
                  aria-hidden="true"
                  tabIndex={-1}
                  title={`Close ${title}`}
                  onClick={() => void close(row.id)}
                >
                  <Icon name="close" size={14} />
                </button>
              </span>
            );
          })}
        </div>
        <button className="plain-button" aria-label="New terminal" title="New terminal" onClick={() => void open()}>
          <Icon name="plus" />
        </button>
        {rows !== null && rows.length > 0 && (
          <button
            className="plain-button terminal-list-button"
            aria-label="All terminals"
            aria-pressed={isListed}
            title="All terminals"
            onClick={() => {
              setListed(!isListed);
              go("/terminal", { replace: true });
            }}
          >
            <Icon name="plan" />
          </button>
        )}
        {shown !== null && (
          <button
            className="plain-button"
            aria-label="Find in this terminal"
            title="Find (Ctrl F)"
            onClick={() => screens.current.get(shown)?.find()}
          >
            <Icon name="search" />
          </button>
        )}
      </div>
      {problem && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
      {rows?.length === 0 && (
        <div className="terminal-none">
          <p className="quiet">
            A shell in the computer. It keeps running when you leave this page. You can undo the file changes that you
            make in it.
          </p>
          <button className="primary" onClick={() => void open()}>
            Open a terminal
          </button>
        </div>
      )}
      {isListed && rows !== null && rows.length > 0 && (
        <TerminalList
          rows={rows}
          nameOf={nameOf}
          suspect={rows.some((row) => row.id === suspect) ? suspect : null}
          onOpen={choose}
          onClose={(id) => void close(id)}
        />
      )}
      <div className="terminal-screens" hidden={shown === null}>
        {rows
          ?.filter((row) => connected.has(row.id))
          .map((row) => (
            <TerminalScreen
              key={row.id}
              id={row.id}
              ref={(screen) => {
                if (screen !== null) screens.current.set(row.id, screen);
                else screens.current.delete(row.id);
              }}
              shown={row.id === shown}
              control={control}
              onControlUsed={() => setControl(false)}
              onLink={setLink}
              onTitle={(title) => setTitles((all) => ({ ...all, [row.id]: plainTitle(title) }))}
              onEnded={() => setEnded((all) => new Set([...all, row.id]))}
            />
          ))}
      </div>
      {shown !== null && (
        <KeyRow
          control={control}
          onControl={() => setControl(!control)}
          onPress={(key) => screens.current.get(shown)?.press(key)}
          onPaste={() => screens.current.get(shown)?.paste()}
        />
      )}
      {renaming && (
        <RenameDialog
          name={renaming.name}
          onClose={() => setRenaming(null)}
          onRename={(name) => setNames(nameTerminal(renaming.id, name, rows?.map((row) => row.id) ?? []))}
        />
      )}
      {link && (
        <Dialog title="Open this link?" onClose={() => setLink(null)}>
          <p className="quiet">A program in the terminal made this link. It opens:</p>
          <code className="path">{link}</code>
          <div className="dialog-foot">
            <button onClick={() => setLink(null)} autoFocus>
              Cancel
            </button>
            <button
              className="primary"
              onClick={() => {
                window.open(link, "_blank", "noopener,noreferrer");
                setLink(null);
              }}
            >
              Open link
            </button>
          </div>
        </Dialog>
      )}
    </div>
  );
}

/** The terminals that were shown. While one is, it is noted, in case its output cuts the page off. */
function useConnected(shown: string | null): ReadonlySet<string> {
  const [connected, setConnected] = useState<ReadonlySet<string>>(new Set());
  useEffect(() => {
    if (shown !== null) setConnected((before) => (before.has(shown) ? before : new Set([...before, shown])));
    noteOpened(shown);
    const leave = () => noteOpened(null);
    window.addEventListener("pagehide", leave);
    return () => {
      window.removeEventListener("pagehide", leave);
      leave();
    };
  }, [shown]);
  return connected;
}

function RenameDialog({
  name,
  onClose,
  onRename,
}: {
  name: string;
  onClose: () => void;
  onRename: (name: string) => void;
}) {
  const [text, setText] = useState(name);
  return (
    <Dialog title="Rename this terminal" onClose={onClose}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          onRename(text);
          onClose();
        }}
      >
        <label>
          Name
          <input
            autoFocus
            maxLength={40}
            placeholder="Name given by the program"
            value={text}
            onChange={(event) => setText(event.target.value)}
            onFocus={(event) => event.target.select()}
          />
        </label>
        <div className="dialog-foot">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button className="primary">Rename</button>
        </div>
      </form>
    </Dialog>
  );
}
