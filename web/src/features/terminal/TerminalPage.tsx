import { lazy, Suspense, useCallback, useEffect, useRef, useState } from "react";
import type { TerminalRow } from "../../client/api";
import { request } from "../../client/http";
import { useAnswer } from "../../ui/answers";
import { Icon } from "../../ui/Icon";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import { go, useRoute } from "../shell/route";
import { chooseTerminal, plainTitle } from "./terminal.logic";
import "./terminal.css";

const Screen = lazy(() => import("./Screen"));
const KEY = "freehold.terminal";

export default function TerminalPage() {
  const { query } = useRoute();
  const wantsNew = query.get("new") !== null;
  const { value: rows, problem, reload, put } = useAnswer<TerminalRow[]>("/v1/terminals");
  const [wanted, setWanted] = useState(() => sessionStorage.getItem(KEY));
  const [titles, setTitles] = useState<Record<string, string>>({});
  const [ended, setEnded] = useState<ReadonlySet<string>>(new Set());
  const toasts = useToasts();
  const shown = rows === null ? null : chooseTerminal(rows, wanted);

  const choose = useCallback((id: string) => {
    sessionStorage.setItem(KEY, id);
    setWanted(id);
  }, []);
  const opening = useRef(false);
  const open = useCallback(async () => {
    if (opening.current) return;
    opening.current = true;
    try {
      const made = await request<TerminalRow>("/v1/terminals", { method: "POST", body: {} });
      choose(made.id);
      put(await request<TerminalRow[]>("/v1/terminals"));
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

  return (
    <div className="terminals">
      <div className="terminal-tabs">
        <h1 className="unseen">Terminal</h1>
        <div className="terminal-list" role="tablist" aria-label="Terminals">
          {rows?.map((row, index) => {
            const title = titles[row.id] || `Terminal ${index + 1}`;
            return (
              <span key={row.id} className="terminal-tab" data-shown={row.id === shown || undefined}>
                <button
                  role="tab"
                  aria-selected={row.id === shown}
                  aria-keyshortcuts="Delete"
                  onClick={() => choose(row.id)}
                  onKeyDown={(event) => {
                    if (event.key === "Delete") void close(row.id);
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
        <Suspense fallback={<p className="loading quiet">Opening…</p>}>
          {rows?.map((row) => (
            <Screen
              key={row.id}
              id={row.id}
              shown={row.id === shown}
              onTitle={(title) => setTitles((all) => ({ ...all, [row.id]: plainTitle(title) }))}
              onEnded={() => setEnded((all) => new Set([...all, row.id]))}
            />
          ))}
        </Suspense>
      </div>
    </div>
  );
}
