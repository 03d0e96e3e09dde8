import { type ChangeEvent, type FormEvent, useRef, useState } from "react";
import type { AgentInfo, Document, PodAccesses, PodGrant, PodGrants, PodPage } from "../../client/api";
import { downloadAs, type Problem, problemOf, request, upload as uploadFile } from "../../client/http";
import { useResource } from "../../data/resource";
import { ConfirmButton } from "../../ui/ConfirmButton";
import { formatDateTime } from "../../ui/format";
import { Icon } from "../../ui/Icon";
import { Notice } from "../../ui/Notice";
import { accessText, addressOf, factsOf, folderText, isFolder, mergeEntries, nameOf, trailOf } from "./pods.logic";
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
  const picker = useRef<HTMLInputElement>(null);
  const problem = failure ?? list.problem ?? grants.problem ?? access.problem;
  const isOff = problem?.code === "pods.disabled";

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
    <div className="column pods">
      <header className="head">
        <h1>Data</h1>
        <p className="quiet">Your documents. An agent reaches only what you grant.</p>
      </header>
      {problem && !isOff && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
      {isOff ? (
        <p className="empty">
          Personal data is off. To turn it on, set <code>slots.pods = "local"</code> in freehold.toml and restart
          Freehold.
        </p>
      ) : (
        <>
          <section aria-labelledby="pods-folder">
            <div className="section-head">
              <h2 id="pods-folder" className="pods-trail">
                <button type="button" className="text-button" disabled={folder === ""} onClick={() => setFolder("")}>
                  All documents
                </button>
                {trailOf(folder).map((one) => (
                  <button
                    key={one}
                    type="button"
                    className="text-button"
                    disabled={one === folder}
                    onClick={() => setFolder(one)}
                  >
                    {nameOf(one)}
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
                  <li key={entry.path}>
                    <Entry entry={entry} busy={isBusy} onOpen={setFolder} onRemove={(one) => void remove(one)} />
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
                    <span className={one.act === "refused" ? "grow problem-text" : "grow"}>{accessText(one)}</span>
                    <time className="quiet pods-facts" dateTime={one.at}>
                      {formatDateTime(Date.parse(one.at) / 1000)}
                    </time>
                  </li>
                ))}
              </ul>
            )}
          </section>
        </>
      )}
    </div>
  );
}

interface EntryProps {
  entry: Document;
  busy: boolean;
  onOpen: (folder: string) => void;
  onRemove: (entry: Document) => void;
}

function Entry({ entry, busy, onOpen, onRemove }: EntryProps) {
  const name = nameOf(entry.path);
  return (
    <>
      <Icon name={isFolder(entry) ? "folder" : "file"} />
      <div className="grow">
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
            <span className="pods-name">{name}</span>
            <p className="quiet">{factsOf(entry)}</p>
          </>
        )}
      </div>
      {!isFolder(entry) && (
        <button
          type="button"
          className="plain-button"
          title={`Download ${name}`}
          aria-label={`Download ${name}`}
          onClick={() => void downloadAs(addressOf(entry.path), name)}
        >
          <Icon name="download" />
        </button>
      )}
      <ConfirmButton
        label="Delete"
        confirmLabel="Delete?"
        name={`Delete ${name}`}
        disabled={busy}
        onConfirm={() => onRemove(entry)}
      />
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
            <li key={`${one.agent} ${one.folder}`}>
              <span className="grow">
                <strong>{one.agent}</strong> may {one.mode === "write" ? "read and write" : "read"}{" "}
                {folderText(one.folder)}
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
          Grant access to {folderText(folder)}
        </button>
      </form>
    </section>
  );
}
