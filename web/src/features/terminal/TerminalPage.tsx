import { useCallback, useEffect, useRef, useState, type KeyboardEvent } from "react";
import type { TerminalRow } from "../../client/api";
import { request } from "../../client/http";
import { useAnswer } from "../../ui/answers";
import { Dialog } from "../../ui/Dialog";
import { Icon } from "../../ui/Icon";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import { later } from "../../ui/later";
import { go, useRoute } from "../shell/route";
import { KeyRow } from "./KeyRow";
import type { ScreenHandle } from "./Screen";
import { chooseTerminal, nameTerminal, plainTitle, readNames } from "./terminal.logic";
import "./terminal.css";

const Screen = later(() => import("./Screen"), "Opening…");
const KEY = "freehold.terminal";

export default function TerminalPage() {
  const { query } = useRoute();
  const wantsNew = query.get("new") !== null;
  const { value: rows, problem, reload, put } = useAnswer<TerminalRow[]>("/v1/terminals");
  const [wanted, setWanted] = useState(() => sessionStorage.getItem(KEY));
  const [titles, setTitles] = useState<Record<string, string>>({});
  const [ended, setEnded] = useState<ReadonlySet<string>>(new Set());
  const [names, setNames] = useState(() => readNames());
  const [naming, setNaming] = useState<{ id: string; name: string } | null>(null);
  const [link, setLink] = useState<string | null>(null);
  const [control, setControl] = useState(false);
  const screens = useRef(new Map<string, ScreenHandle>());
  const toasts = useToasts();
  const shown = rows === null ? null : chooseTerminal(rows, wanted);

  const choose = useCallback((id: string) => {
    sessionStorage.setItem(KEY, id);
    setWanted(id);
  }, []);
  const opening = useRef(false);
  const latest = useRef(rows);
  useEffect(() => {
    latest.current = rows;
  });
  const open = useCallback(async () => {
    if (opening.current) return;
    opening.current = true;
    try {
      const made = await request<TerminalRow>("/v1/terminals", { method: "POST", body: {} });
      put([...(latest.current ?? []), made]);
      choose(made.id);
    } catch (error) {
      toasts.failed(error);
    }
    opening.current = false;
  }, [choose, put, toasts]);
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
  }, [wantsNew, open]);

  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    list.current?.querySelector("[data-shown]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [shown, rows]);

  function walk(event: KeyboardEvent, at: number) {
    const to = at + (event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0);
    const next = rows?.[to];
    if (to === at || next === undefined) return;
    choose(next.id);
    event.currentTarget.closest("[role=tablist]")?.querySelectorAll<HTMLElement>("[role=tab]")[to]?.focus();
  }

  return (
    <div className="terminals">
      <div className="terminal-tabs">
        <h1 className="unseen">Terminal</h1>
        <div ref={list} className="terminal-list" role="tablist" aria-label="Terminals">
          {rows?.map((row, index) => {
            const title = names[row.id] || titles[row.id] || `Terminal ${index + 1}`;
            return (
              <span key={row.id} className="terminal-tab" data-shown={row.id === shown || undefined}>
                <button
                  role="tab"
                  aria-selected={row.id === shown}
                  aria-keyshortcuts="Delete F2"
                  title={`${title} (double-click or F2 to rename)`}
                  onClick={() => choose(row.id)}
                  onDoubleClick={() => setNaming({ id: row.id, name: title })}
                  onKeyDown={(event) => {
                    if (event.key === "Delete") void close(row.id);
                    else if (event.key === "F2") setNaming({ id: row.id, name: title });
                    else walk(event, index);
                  }}
                >
                  {title}
                  {(ended.has(row.id) || row.ended) && <span className="chip">ended</span>}
                </button>
                {/* A list of tabs may hold nothing but tabs: this one is for the pointer, and the key above for everyone. */}
                <button className="plain-button" aria-hidden="true" tabIndex={-1} title={`Close ${title}`} onClick={() => void close(row.id)}>
                  <Icon name="close" size={14} />
                </button>
              </span>
            );
          })}
        </div>
        <button className="plain-button" aria-label="New terminal" title="New terminal" onClick={() => void open()}>
          <Icon name="plus" />
        </button>
        {shown !== null && (
          <button className="plain-button find" aria-label="Find in this terminal" title="Find (Ctrl F)" onClick={() => screens.current.get(shown)?.find()}>
            <Icon name="search" />
          </button>
        )}
      </div>
      {problem && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
      {rows?.length === 0 && (
        <div className="terminal-none">
          <p className="quiet">A shell in the computer. It stays when you leave this page, and what is done in it can be undone.</p>
          <button className="primary" onClick={() => void open()}>
            Open a terminal
          </button>
        </div>
      )}
      <div className="screens">
        {rows?.map((row) => (
          <Screen
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
      {naming && (
        <NameDialog
          name={naming.name}
          onClose={() => setNaming(null)}
          onName={(name) => setNames(nameTerminal(naming.id, name, rows?.map((row) => row.id) ?? []))}
        />
      )}
      {link && (
        <Dialog title="Open this address?" onClose={() => setLink(null)}>
          <p className="quiet">A program in the terminal made this link. It leads to:</p>
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
              Open
            </button>
          </div>
        </Dialog>
      )}
    </div>
  );
}

function NameDialog({ name, onClose, onName }: { name: string; onClose: () => void; onName: (name: string) => void }) {
  const [text, setText] = useState(name);
  return (
    <Dialog title="Name this terminal" onClose={onClose}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          onName(text);
          onClose();
        }}
      >
        <label>
          Name
          <input autoFocus maxLength={40} placeholder="As its program says" value={text} onChange={(event) => setText(event.target.value)} onFocus={(event) => event.target.select()} />
        </label>
        <div className="dialog-foot">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button className="primary">Name it</button>
        </div>
      </form>
    </Dialog>
  );
}
