import { type ChangeEvent, type FormEvent, useRef, useState } from "react";
import type { AgentInfo, Document, PodAccesses, PodGrant, PodGrants, PodPage } from "../../client/api";
import { downloadAs, type Problem, problemOf, request, upload as uploadFile } from "../../client/http";
import { useResource } from "../../data/resource";
import { ConfirmButton } from "../../ui/ConfirmButton";
import { formatDateTime } from "../../ui/format";
import { Icon } from "../../ui/Icon";
import { followLink, sessionPath } from "../../ui/route";
import { visibleText } from "../../ui/visibleText";
import { SlotPage } from "../slots/SlotPage";
import { DocumentDialog } from "./DocumentDialog";
import {
  accessText,
  addressOf,
  factsOf,
  folderText,
  isFolder,
  isText,
  mergeEntries,
  nameOf,
  trailOf,
} from "./pods.logic";
import "./pods.css";

const PODS = "/v1/slots/pods";
const LIMIT = 200;
const LIVE = { topic: "timeline", durable: true, delay: 200 };

const listOf = (folder: string) => `${PODS}/list?folder=${encodeURIComponent(folder)}&limit=${LIMIT}`;

/** Personal documents: browse them, see who reached what, and decide which agent may. */
export default function PodsPage() {
  const [folder, setFolder] = useState("");
  const list = useResource<PodPage>(listOf(folder), LIVE);
  const grants = useResource<PodGrants>(`${PODS}/grants`, LIVE);
  const access = useResource<PodAccesses>(`${PODS}/access?limit=30`, { ...LIVE, pollInterval: 10_000 });
  const [failure, setFailure] = useState<Problem | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  const [read, setRead] = useState<Document | null>(null);
  const picker = useRef<HTMLInputElement>(null);
  const problem = failure ?? list.problem ?? grants.problem ?? access.problem;

  function reload() {
    setFailure(null);
    for (const one of [list, grants, access]) one.reload();
  }

  async function run(work: () => Promise<unknown>, isChange = true) {
    setIsBusy(true);
    try {
      await work();
      if (isChange) reload();
    } catch (error) {
      setFailure(problemOf(error));
    } finally {
      setIsBusy(false);
    }
  }

  const remove = (entry: Document) => run(() => request(addressOf(entry.path), { method: "DELETE" }));
  function upload(event: ChangeEvent<HTMLInputElement>) {
    const files = [...(event.target.files ?? [])];
    event.target.value = "";
    void run(async () => {
      for (const file of files) {
        const type = file.type || "application/octet-stream";
        await uploadFile(addressOf(folder + file.name), file, { "content-type": type });
      }
    });
  }

  const more = () =>
    run(async () => {
      const cursor = list.value?.cursor;
      if (!cursor) return;
      const next = await request<PodPage>(`${listOf(folder)}&cursor=${encodeURIComponent(cursor)}`);
      list.update((held) => ({ entries: mergeEntries(held.entries, next.entries), cursor: next.cursor }));
    }, false);
  const grant = (agent: string, mode: string) =>
    run(() => request(`${PODS}/grants`, { method: "POST", body: { agent, folder, mode } }));
  const revoke = (one: PodGrant) =>
    run(() => request(`${PODS}/grants/revoke`, { method: "POST", body: { agent: one.agent, folder: one.folder } }));

  return (
    <SlotPage slot="pods" className="pods" problem={problem} loaded={list.value !== null} onRetry={reload}>
      <section aria-labelledby="pods-folder">
        <div className="section-head">
          <h2 id="pods-folder" className="pods-trail">
            <button type="button" className="text-button" disabled={folder === ""} onClick={() => setFolder("")}>
              All documents
            </button>
            {folder !== "" && (
              <span className="quiet" aria-hidden="true">
                /
              </span>
            )}
            {trailOf(folder).map((one) => (
              <button
                key={one}
                type="button"
                className="text-button"
                disabled={one === folder}
                onClick={() => setFolder(one)}
              >
                {visibleText(nameOf(one))}
              </button>
            ))}
          </h2>
          <button type="button" className="small" disabled={isBusy} onClick={() => picker.current?.click()}>
            <Icon name="upload" size={16} />
            Add documents
          </button>
          <input ref={picker} type="file" multiple hidden aria-label="Documents to add" onChange={upload} />
        </div>
        {list.value === null && !problem && (
          <p className="quiet" role="status">
            Loading…
          </p>
        )}
        {list.value?.entries.length === 0 && <p className="empty">This folder is empty.</p>}
        {list.value !== null && list.value.entries.length > 0 && (
          <ul className="rows">
            {list.value.entries.map((entry) => (
              <li key={entry.path} className="wrapping-row">
                <Entry
                  entry={entry}
                  busy={isBusy}
                  onOpen={setFolder}
                  onRead={setRead}
                  onRemove={(one) => void remove(one)}
                />
              </li>
            ))}
          </ul>
        )}
        {list.value !== null && list.value.cursor !== null && (
          <button type="button" className="pods-more" disabled={isBusy} onClick={() => void more()}>
            Show more
          </button>
        )}
      </section>
      <Grants
        grants={grants.value?.grants ?? []}
        folder={folder}
        busy={isBusy}
        onGrant={(agent, mode) => void grant(agent, mode)}
        onRevoke={(one) => void revoke(one)}
      />
      <section aria-labelledby="pods-access">
        <h2 id="pods-access">Who reached what</h2>
        {access.value?.entries.length === 0 && <p className="empty">Nobody but you has reached anything.</p>}
        {access.value !== null && access.value.entries.length > 0 && (
          <ul className="rows">
            {access.value.entries.map((one) => (
              <li key={one.number} className="wrapping-row">
                <span className={one.act === "refused" ? "grow problem-text" : "grow"}>
                  {visibleText(accessText(one))}
                </span>
                <time className="quiet pods-facts" dateTime={one.at}>
                  {formatDateTime(Date.parse(one.at) / 1000)}
                </time>
              </li>
            ))}
          </ul>
        )}
      </section>
      {read && <DocumentDialog entry={read} onClose={() => setRead(null)} />}
    </SlotPage>
  );
}

interface EntryProps {
  entry: Document;
  busy: boolean;
  onOpen: (folder: string) => void;
  onRead: (entry: Document) => void;
  onRemove: (entry: Document) => void;
}

function Entry({ entry, busy, onOpen, onRead, onRemove }: EntryProps) {
  const name = visibleText(nameOf(entry.path));
  return (
    <>
      <div className="grow pods-entry">
        <Icon name={isFolder(entry) ? "folder" : "file"} />
        <div>
          {isFolder(entry) ? (
            <button
              type="button"
              className="text-button pods-name"
              aria-label={`Open ${name}`}
              onClick={() => onOpen(entry.path)}
            >
              {name}
            </button>
          ) : (
            <>
              {isText(entry) ? (
                <button
                  type="button"
                  className="text-button pods-name"
                  aria-label={`Read ${name}`}
                  onClick={() => onRead(entry)}
                >
                  <bdi dir="ltr">{name}</bdi>
                </button>
              ) : (
                <span className="pods-name">
                  <bdi dir="ltr">{name}</bdi>
                </span>
              )}
              <p className="quiet">{factsOf(entry)}</p>
            </>
          )}
        </div>
      </div>
      {!isFolder(entry) && (
        <button
          type="button"
          className="plain-button"
          title={`Download ${name}`}
          aria-label={`Download ${name}`}
          onClick={() => void downloadAs(addressOf(entry.path), nameOf(entry.path))}
        >
          <Icon name="download" />
        </button>
      )}
      <ConfirmButton
        label="Delete"
        confirmLabel="Delete?"
        spoken={`Delete ${name}`}
        disabled={busy}
        onConfirm={() => onRemove(entry)}
      />
    </>
  );
}

function SessionReach({ session, once }: { session: string; once: boolean }) {
  const to = sessionPath(session);
  return (
    <>
      , {once ? "one time in" : "only in"}{" "}
      <a href={to} onClick={(event) => followLink(event, to)}>
        one session
      </a>
    </>
  );
}

interface GrantsProps {
  grants: PodGrant[];
  folder: string;
  busy: boolean;
  onGrant: (agent: string, mode: string) => void;
  onRevoke: (grant: PodGrant) => void;
}

function Grants({ grants, folder, busy, onGrant, onRevoke }: GrantsProps) {
  const [agent, setAgent] = useState("");
  const [mode, setMode] = useState("read");
  const agents = useResource<AgentInfo[]>("/v1/agents");

  function submit(event: FormEvent) {
    event.preventDefault();
    if (agent.trim() === "") return;
    onGrant(agent.trim(), mode);
    setAgent("");
  }

  return (
    <section aria-labelledby="pods-grants">
      <h2 id="pods-grants">Access of agents</h2>
      {grants.length === 0 && <p className="empty">No agent has access.</p>}
      {grants.length > 0 && (
        <ul className="rows">
          {grants.map((one) => (
            <li key={`${one.agent} ${one.folder} ${one.session} ${one.granted}`} className="wrapping-row">
              <span className="grow">
                <strong>{one.agent}</strong> may {one.mode === "write" ? "read and write" : "read"}{" "}
                <bdi>{visibleText(folderText(one.folder))}</bdi>
                {one.session !== null && <SessionReach session={one.session} once={one.once} />}
              </span>
              <button
                type="button"
                className="small danger"
                disabled={busy}
                aria-label={`Revoke: ${one.agent}, ${folderText(one.folder)}`}
                onClick={() => onRevoke(one)}
              >
                Revoke
              </button>
            </li>
          ))}
        </ul>
      )}
      <form className="pods-grant" onSubmit={submit}>
        <input
          aria-label="Agent"
          placeholder="Agent, such as claude"
          maxLength={100}
          list="pods-agents"
          value={agent}
          onChange={(event) => setAgent(event.target.value)}
        />
        <datalist id="pods-agents">
          {(agents.value ?? []).map((one) => (
            <option key={one.name} value={one.name} />
          ))}
        </datalist>
        <select aria-label="What it may do" value={mode} onChange={(event) => setMode(event.target.value)}>
          <option value="read">read</option>
          <option value="write">read and write</option>
        </select>
        <button type="submit" disabled={busy || agent.trim() === ""}>
          Grant access to {visibleText(folderText(folder))}
        </button>
      </form>
    </section>
  );
}
