import { useCallback, useState } from "react";
import type { AgentRow, SessionPage, SessionView } from "../../client/api";
import { request } from "../../client/http";
import { useAnswer, useNow } from "../../ui/answers";
import { Icon } from "../../ui/Icon";
import { ago } from "../../ui/moments";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import { useTopic } from "../shell/live";
import { go, useRoute } from "../shell/route";
import { Conversation } from "./conversation/Conversation";
import "./sessions.css";

const WORDS: Record<SessionView["status"], string> = { idle: "", working: "working", needs_you: "needs you", failed: "failed", queued: "queued" };
const TONES: Record<SessionView["status"], string> = { idle: "", working: "leaf", needs_you: "amber", failed: "alarm", queued: "" };

export default function SessionsPage() {
  const { query } = useRoute();
  const chosen = query.get("id");
  const [typed, setTyped] = useState("");
  const [agent, setAgent] = useState("");
  const now = useNow();
  const toasts = useToasts();
  const { value, problem, reload } = useAnswer<SessionPage>(`/v1/sessions?limit=200&query=${encodeURIComponent(typed)}`);
  const agents = useAnswer<AgentRow[]>("/v1/agents");
  const usable = agents.value?.filter((one) => one.installed) ?? [];
  useTopic("sessions", { event: reload, resync: reload });

  const open = useCallback(async () => {
    try {
      const made = await request<SessionView>("/v1/sessions", { method: "POST", body: agent === "" ? {} : { agent } });
      go(`/sessions?id=${encodeURIComponent(made.id)}`);
      reload();
    } catch (error) {
      toasts.failed(error);
    }
  }, [agent, reload, toasts]);

  const session = value?.sessions.find((one) => one.id === chosen) ?? null;
  return (
    <div className="files" data-open={chosen !== null || undefined}>
      <aside className="tree-pane" aria-label="Sessions">
        <div className="tree-head">
          <h1>Sessions</h1>
          {usable.length > 1 && (
            <select className="agent-choice" aria-label="Agent" value={agent} onChange={(event) => setAgent(event.target.value)}>
              <option value="">default</option>
              {usable.map((one) => (
                <option key={one.name} value={one.name}>
                  {one.title || one.name}
                </option>
              ))}
            </select>
          )}
          <button className="small primary" onClick={() => void open()}>
            <Icon name="plus" size={16} /> New
          </button>
        </div>
        <input className="tree-search" type="search" placeholder="Find a session" aria-label="Find a session" value={typed} onChange={(event) => setTyped(event.target.value)} />
        {problem && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
        {value?.sessions.length === 0 && <p className="empty tree-note">{typed ? "No session is called that." : "No sessions yet. Start one to talk to an agent."}</p>}
        <ul className="session-list">
          {value?.sessions.map((one) => (
            <li key={one.id}>
              <button aria-current={one.id === chosen ? "true" : undefined} onClick={() => go(`/sessions?id=${encodeURIComponent(one.id)}`)}>
                <span className="session-title">{one.title || "New session"}</span>
                <span className="quiet">
                  {one.agent} · {ago(new Date(one.updated).getTime() / 1000, now)}
                </span>
                {WORDS[one.status] && (
                  <span className="chip" data-tone={TONES[one.status]}>
                    {WORDS[one.status]}
                  </span>
                )}
              </button>
            </li>
          ))}
        </ul>
      </aside>
      {chosen === null ? (
        <div className="file-none">
          <p className="quiet">Choose a session, or start one.</p>
        </div>
      ) : (
        <Conversation key={chosen} id={chosen} session={session} onClose={() => go("/sessions")} />
      )}
    </div>
  );
}
