import { useState } from "react";
import type { SentWork, SentWorkDetails } from "../../client/api";
import { useResource } from "../../data/resource";
import { ConfirmButton } from "../../ui/ConfirmButton";
import { go } from "../../ui/route";
import { visibleText } from "../../ui/visibleText";
import { isOpen, stateText } from "./neighbours.logic";

const POLL_INTERVAL = 2_000;

interface SentWorkListProps {
  work: SentWork[];
  busy: boolean;
  onAct: (path: string, method: "POST", body: object) => Promise<boolean>;
}

/** The work that was sent, the newest first. */
export function SentWorkList({ work, busy, onAct }: SentWorkListProps) {
  return (
    <section aria-labelledby="mesh-work">
      <h2 id="mesh-work">Work</h2>
      <ul className="mesh-list">
        {work.map((one) => (
          <SentWorkCard key={one.id} work={one} busy={busy} onAct={onAct} />
        ))}
      </ul>
    </section>
  );
}

function SentWorkCard({ work, busy, onAct }: Omit<SentWorkListProps, "work"> & { work: SentWork }) {
  const [isShown, setIsShown] = useState(work.state === "returned");
  const [folder, setFolder] = useState("");
  const path = `/v1/mesh/work/${encodeURIComponent(work.id)}`;
  return (
    <li className="card">
      <h3>{visibleText(work.title)}</h3>
      <p className="quiet">{visibleText(work.neighbour ?? "a former neighbour")}</p>
      <p role="status">{visibleText(stateText(work))}</p>
      <div className="mesh-actions">
        <button type="button" className="small" aria-expanded={isShown} onClick={() => setIsShown(!isShown)}>
          {isShown ? "Hide details" : "Show details"}
        </button>
        {isOpen(work) && (
          <button
            type="button"
            className="small"
            disabled={busy}
            onClick={() => void onAct(`${path}/stop`, "POST", {})}
          >
            Stop
          </button>
        )}
        {work.entry !== null && (
          <button type="button" className="small" onClick={() => go(`/history?entry=${work.entry}`)}>
            Show entry {work.entry} of history
          </button>
        )}
      </div>
      {isShown && <SentWorkFiles path={path} isOpen={isOpen(work)} />}
      {work.state === "returned" && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void onAct(`${path}/accept`, "POST", { folder });
          }}
        >
          <label>
            Folder of the workspace
            <input type="text" value={folder} placeholder="poems" onChange={(event) => setFolder(event.target.value)} />
          </label>
          <div className="mesh-actions">
            <button type="submit" className="primary" disabled={busy}>
              Accept the files
            </button>
            <ConfirmButton
              label="Drop the files"
              confirmLabel="Drop them?"
              disabled={busy}
              onConfirm={() => void onAct(`${path}/drop`, "POST", {})}
            />
          </div>
          <p className="quiet">You can undo this.</p>
        </form>
      )}
    </li>
  );
}

function SentWorkFiles({ path, isOpen }: { path: string; isOpen: boolean }) {
  const found = useResource<SentWorkDetails>(path, isOpen ? { pollInterval: POLL_INTERVAL } : {});
  if (found.value === null) {
    return (
      <p className="quiet" role="status">
        {found.problem === null ? "Loading…" : found.problem.message}
      </p>
    );
  }
  const words = found.value.events.filter((event) => event.kind === "message");
  return (
    <>
      {words.map((event) => (
        <p key={event.seq} className="mesh-words">
          {visibleText(String(event.data.text ?? ""))}
        </p>
      ))}
      {found.value.files.map((file) => (
        <details key={file.path}>
          <summary>
            {visibleText(file.path)}, {file.size} bytes
            {file.is_program && ", a program"}
            {file.runs_by_itself !== null && (
              <span className="problem-text"> runs by itself: {visibleText(file.runs_by_itself)}</span>
            )}
          </summary>
          {/* The content scrolls, and keys need something to begin at. */}
          <pre tabIndex={0}>{file.text === null ? "This is not a short text." : visibleText(file.text)}</pre>
        </details>
      ))}
    </>
  );
}
