import { type FormEvent, useEffect, useRef, useState } from "react";
import type { Bead, BeadDetails, BeadWork } from "../../client/api";
import { request } from "../../client/http";
import { useResource } from "../../data/resource";
import { Dialog } from "../../ui/Dialog";
import { formatDateTime, secondsOf } from "../../ui/format";
import { Notice } from "../../ui/Notice";
import { PlainText } from "../../ui/PlainText";
import { followLink, sessionPath } from "../../ui/route";
import { visibleText } from "../../ui/visibleText";
import { changeText, concernsBoard, holderText, isSessionHere, readLabels, relationsOf, workText } from "./board.logic";

interface BeadDialogProps {
  bead: Bead;
  titleOf: (id: string) => string;
  onChange: () => void;
  onClose: () => void;
}

/** Everything about an item: description, relations, sessions with their changes, comments, history. */
export function BeadDialog({ bead, titleOf, onChange, onClose }: BeadDialogProps) {
  const path = `/v1/slots/beads/items/${encodeURIComponent(bead.id)}`;
  const live = { topic: "timeline", durable: true, concerns: concernsBoard, delay: 150 };
  const details = useResource<BeadDetails>(path, live);
  const changes = useResource<BeadWork[]>(bead.sessions.length === 0 ? null : `${path}/changes`, live);
  const shown = details.value?.bead ?? bead;
  const [isEditing, setIsEditing] = useState(false);
  const saved = () => {
    setIsEditing(false);
    details.reload();
    onChange();
  };
  return (
    <Dialog title={visibleText(shown.title)} onClose={onClose} wide>
      <div className="beads-details">
        {details.problem && <Notice problem={details.problem} action={{ label: "Try again", run: details.reload }} />}
        {isEditing && (
          <EditForm
            bead={shown}
            path={path}
            onDone={saved}
            onFail={details.fail}
            onCancel={() => setIsEditing(false)}
          />
        )}
        {!isEditing && shown.description !== "" && <PlainText text={shown.description} label="Description" />}
        <dl className="facts">
          {relationsOf(shown, details.value, titleOf).map(([name, text]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd className="beads-lines">{visibleText(text)}</dd>
            </div>
          ))}
          {shown.sessions.length > 0 && (
            <div>
              <dt>Sessions</dt>
              <dd>
                {shown.sessions.map((id) =>
                  isSessionHere(id) ? (
                    <a key={id} href={sessionPath(id)} onClick={(event) => followLink(event, sessionPath(id))}>
                      {id}{" "}
                    </a>
                  ) : (
                    <span key={id}>{id} </span>
                  ),
                )}
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
                <PlainText text={one.text} label="Comment" />
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
      </div>
      {!isEditing && (
        <div className="dialog-foot">
          <button type="button" onClick={() => setIsEditing(true)}>
            Edit
          </button>
          <button type="button" onClick={onClose}>
            Done
          </button>
        </div>
      )}
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

interface EditFormProps extends CommentFormProps {
  bead: Bead;
  onCancel: () => void;
}

/** Changes what an item says. It is refused when somebody else has changed the item meanwhile. */
function EditForm({ bead, path, onDone, onFail, onCancel }: EditFormProps) {
  const [title, setTitle] = useState(bead.title);
  const [description, setDescription] = useState(bead.description);
  const [priority, setPriority] = useState(bead.priority);
  const [labels, setLabels] = useState(bead.labels.join(", "));
  const [version] = useState(bead.version);
  const [isBusy, setIsBusy] = useState(false);
  const first = useRef<HTMLInputElement>(null);
  useEffect(() => first.current?.focus(), []);

  async function submit(event: FormEvent) {
    event.preventDefault();
    setIsBusy(true);
    try {
      const body = { title: title.trim(), description, priority, labels: readLabels(labels), version };
      await request(path, { method: "PATCH", body });
      onDone();
    } catch (error) {
      onFail(error);
    } finally {
      setIsBusy(false);
    }
  }

  return (
    <form className="beads-close" onSubmit={(event) => void submit(event)}>
      <label>
        Title
        <input ref={first} value={title} maxLength={500} onChange={(event) => setTitle(event.target.value)} />
      </label>
      <label>
        Description
        <textarea
          rows={4}
          maxLength={20000}
          value={description}
          onChange={(event) => setDescription(event.target.value)}
        />
      </label>
      <label>
        Priority
        <select value={priority} onChange={(event) => setPriority(Number(event.target.value))}>
          {[0, 1, 2, 3, 4].map((one) => (
            <option key={one} value={one}>
              {one === 0 ? "0, first" : one === 4 ? "4, last" : one}
            </option>
          ))}
        </select>
      </label>
      <label>
        Labels
        <input
          placeholder="house, urgent"
          maxLength={2000}
          value={labels}
          onChange={(event) => setLabels(event.target.value)}
        />
      </label>
      <div className="dialog-foot">
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
        <button type="submit" className="primary" disabled={isBusy || title.trim() === ""}>
          Save
        </button>
      </div>
    </form>
  );
}
