import { type FormEvent, useState } from "react";
import type { Document, PodAccesses, PodGrant, PodGrants, PodPage } from "../../client/api";
import { downloadAs, type Problem, problemOf, request, upload } from "../../client/http";
import { useResource } from "../../data/resource";
import { ConfirmButton } from "../../ui/ConfirmButton";
import { formatDateTime } from "../../ui/format";
import { Notice } from "../../ui/Notice";
import { accessText, addressOf, folderText, isFolder, nameOf, parentOf } from "./pods.logic";
import "./pods.css";

const PODS = "/v1/slots/pods";
const LIMIT = 200;
const LIVE = { topic: "timeline", durable: true, delay: 200 };

/** Personal documents: browse them, see who reached what, and decide which agent may. */
export default function PodsPage() {
  const [folder, setFolder] = useState("");
  const list = useResource<PodPage>(`${PODS}/list?folder=${encodeURIComponent(folder)}&limit=${LIMIT}`, LIVE);
  const grants = useResource<PodGrants>(`${PODS}/grants`, LIVE);
  const access = useResource<PodAccesses>(`${PODS}/access?limit=30`, { ...LIVE, pollInterval: 10_000 });
  const [failure, setFailure] = useState<Problem | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  const problem = failure ?? list.problem ?? grants.problem ?? access.problem;
  const isOff = problem?.code === "pods.disabled";

  function reload() {
    setFailure(null);
    for (const one of [list, grants, access]) one.reload();
  }

  async function run(work: () => Promise<unknown>) {
    setIsBusy(true);
    try {
      await work();
      reload();
    } catch (error) {
      setFailure(problemOf(error));
    } finally {
      setIsBusy(false);
    }
  }

  const remove = (entry: Document) => run(() => request(addressOf(entry.path), { method: "DELETE" }));
  const add = (file: File) =>
    run(() => upload(addressOf(folder + file.name), file, { "content-type": file.type || "application/octet-stream" }));
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
            <h2 id="pods-folder">{folder === "" ? "All documents" : folder}</h2>
            <div className="pods-actions">
              {folder !== "" && (
                <button type="button" onClick={() => setFolder(parentOf(folder) ?? "")}>
                  Go up
                </button>
              )}
              <label className="pods-upload">
                Add a document
                <input
                  type="file"
                  disabled={isBusy}
                  onChange={(event) => {
                    const file = event.target.files?.[0];
                    event.target.value = "";
                    if (file) void add(file);
                  }}
                />
              </label>
            </div>
            {list.value === null && !problem && (
              <p className="quiet" role="status">
                Loading…
              </p>
            )}
            {list.value?.entries.length === 0 && <p className="empty">Nothing is here.</p>}
            <ul className="pods-list">
              {(list.value?.entries ?? []).map((entry) => (
                <li key={entry.path} className="card">
                  <Entry entry={entry} busy={isBusy} onOpen={setFolder} onRemove={(one) => void remove(one)} />
                </li>
              ))}
            </ul>
            {list.value !== null && list.value.cursor !== null && (
              <p className="quiet">The first {LIMIT} entries are shown.</p>
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
            <ul className="pods-list">
              {(access.value?.entries ?? []).map((one) => (
                <li key={one.number} className={one.act === "refused" ? "problem-text" : undefined}>
                  {accessText(one)}{" "}
                  <time className="quiet" dateTime={one.at}>
                    {formatDateTime(Date.parse(one.at) / 1000)}
                  </time>
                </li>
              ))}
            </ul>
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
      <p className="pods-name">{name}</p>
      <div className="pods-actions">
        {!isFolder(entry) && (
          <span className="quiet">
            {entry.media}
            {entry.size === null ? "" : `, ${entry.size} bytes`}
          </span>
        )}
        {isFolder(entry) ? (
          <button type="button" className="small" aria-label={`Open ${name}`} onClick={() => onOpen(entry.path)}>
            Open
          </button>
        ) : (
          <button
            type="button"
            className="small"
            aria-label={`Download ${name}`}
            onClick={() => void downloadAs(addressOf(entry.path), name)}
          >
            Download
          </button>
        )}
        <ConfirmButton
          label="Delete"
          confirmLabel="Delete?"
          name={`Delete ${name}`}
          disabled={busy}
          onConfirm={() => onRemove(entry)}
        />
      </div>
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
      <ul className="pods-list">
        {grants.map((one) => (
          <li key={`${one.agent} ${one.folder}`} className="card pods-actions">
            <span className="pods-name">
              {one.agent} may {one.mode === "write" ? "read and write" : "read"} {folderText(one.folder)}
            </span>
            <button
              type="button"
              className="small"
              disabled={busy}
              aria-label={`Revoke: ${one.agent}, ${folderText(one.folder)}`}
              onClick={() => onRevoke(one)}
            >
              Revoke
            </button>
          </li>
        ))}
      </ul>
      <form className="pods-actions" onSubmit={submit}>
        <input
          aria-label="Agent"
          placeholder="Agent, such as claude"
          maxLength={100}
          value={agent}
          onChange={(event) => setAgent(event.target.value)}
        />
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
