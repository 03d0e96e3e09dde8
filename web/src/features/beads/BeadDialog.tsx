import { type FormEvent, useState } from "react";
import type { Bead, BeadDetails, BeadWork } from "../../client/api";
import { request } from "../../client/http";
import { useResource } from "../../data/resource";
import { Dialog } from "../../ui/Dialog";
import { formatDateTime, secondsOf } from "../../ui/format";
import { Notice } from "../../ui/Notice";
import { followLink, sessionPath } from "../../ui/route";
import { visibleText } from "../../ui/visibleText";
import { changeText, concernsBoard, holderText, relationsOf, workText } from "./board.logic";

interface BeadDialogProps {
  bead: Bead;
  titleOf: (id: string) => string;
  onClose: () => void;
}

/** Everything about an item: description, relations, sessions with their changes, comments, history. */
export function BeadDialog({ bead, titleOf, onClose }: BeadDialogProps) {
  const path = `/v1/slots/beads/items/${encodeURIComponent(bead.id)}`;
  const live = { topic: "timeline", durable: true, concerns: concernsBoard, delay: 150 };
  const details = useResource<BeadDetails>(path, live);
  const changes = useResource<BeadWork[]>(bead.sessions.length === 0 ? null : `${path}/changes`, live);
  const shown = details.value?.bead ?? bead;
  return (
    <Dialog title={visibleText(shown.title)} onClose={onClose} wide>
      <div className="beads-details">
        {details.problem && <Notice problem={details.problem} action={{ label: "Try again", run: details.reload }} />}
        {shown.description !== "" && <p className="beads-text">{visibleText(shown.description)}</p>}
        <dl className="facts">
          {relationsOf(shown, details.value, titleOf).map(([name, text]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{visibleText(text)}</dd>
            </div>
          ))}
          {shown.sessions.length > 0 && (
            <div>
              <dt>Sessions</dt>
              <dd>
                {shown.sessions.map((id) => (
                  <a key={id} href={sessionPath(id)} onClick={(event) => followLink(event, sessionPath(id))}>
                    {id}{" "}
                  </a>
                ))}
              </dd>
            </div>
          )}
        </dl>
        {(changes.value ?? []).length > 0 && (
          <section aria-labelledby="bead-changes">
            <h3 id="bead-changes">Changed files</h3>
            <ul className="beads-plain">
              {(changes.value ?? []).map((one) => (
                <li key={one.entry}>
                  <a
                    href={`/history/diff?new=${one.entry}`}
                    onClick={(event) => followLink(event, `/history/diff?new=${one.entry}`)}
                  >
                    {workText(one)}
                  </a>{" "}
                  <time className="quiet" dateTime={one.at}>
                    {formatDateTime(secondsOf(one.at))}
                  </time>
                </li>
              ))}
            </ul>
          </section>
        )}
        <section aria-labelledby="bead-comments">
          <h3 id="bead-comments">Comments</h3>
          <ul className="beads-plain">
            {(details.value?.comments ?? []).map((one) => (
              <li key={one.number}>
                <p className="quiet">
                  {holderText(one.author)}, {formatDateTime(secondsOf(one.at))}
                </p>
                <p className="beads-text">{visibleText(one.text)}</p>
              </li>
            ))}
          </ul>
          <CommentForm path={path} onDone={details.reload} onFail={details.fail} />
        </section>
        <section aria-labelledby="bead-history">
          <h3 id="bead-history">History</h3>
          <ul className="beads-plain quiet">
            {(details.value?.history ?? []).map((one) => (
              <li key={`${one.version} ${one.at} ${one.action}`}>
                {changeText(one)}, {formatDateTime(secondsOf(one.at))}
              </li>
            ))}
          </ul>
        </section>
        <div className="dialog-foot">
          <button type="button" onClick={onClose}>
            Done
          </button>
        </div>
      </div>
    </Dialog>
  );
}

interface CommentFormProps {
  path: string;
  onDone: () => void;
  onFail: (error: unknown) => void;
}

function CommentForm({ path, onDone, onFail }: CommentFormProps) {
  const [text, setText] = useState("");
  const [isBusy, setIsBusy] = useState(false);

  async function submit(event: FormEvent) {
    event.preventDefault();
    if (text.trim() === "") return;
    setIsBusy(true);
    try {
      await request(`${path}/comments`, { method: "POST", body: { text: text.trim() } });
      setText("");
      onDone();
    } catch (error) {
      onFail(error);
    } finally {
      setIsBusy(false);
    }
  }

  return (
    <form className="line-form" onSubmit={(event) => void submit(event)}>
      <input
        aria-label="New comment"
        placeholder="Say something about it"
        maxLength={20000}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <button type="submit" disabled={isBusy || text.trim() === ""}>
        Comment
      </button>
    </form>
  );
}
