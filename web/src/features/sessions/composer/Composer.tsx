import { useEffect, useLayoutEffect, useRef, useState, type ClipboardEvent, type DragEvent, type FormEvent, type KeyboardEvent } from "react";
import type { AgentOffer, SessionEvent, SessionView } from "../../../client/api";
import { request } from "../../../client/http";
import { useAnswer } from "../../../ui/answers";
import { Icon } from "../../../ui/Icon";
import { useToasts } from "../../../ui/Toasts";
import { unhidden } from "../../../ui/unhidden";
import { turnOn, useNotifying } from "../../notify/permission";
import { isTyping } from "../../shell/shortcuts";
import { useStop } from "../../stop/stop";
import { useRoster } from "../roster";
import { BudgetNotice } from "./budgets";
import { EMPTY, keepDraft, readDraft, type Draft } from "./draft";
import { OptionsButton } from "./OptionsButton";
import { keyFor, type Letter } from "./outbox.logic";
import { useOutbox } from "./outbox";
import { namedFiles, withoutFile } from "./suggest.logic";
import { LIST, optionId, Suggestions } from "./Suggestions";
import { usePictures } from "./usePictures";
import { useSuggestions } from "./useSuggestions";
import "./composer.css";

export interface ComposerProps {
  id: string;
  session: SessionView | null;
  /** The events that are loaded, oldest first: the last ones always, older ones as the owner scrolls back. */
  events: readonly SessionEvent[];
  /** A prompt was taken: the transcript goes to its end. */
  onSent: () => void;
}

const lastOf = (events: readonly SessionEvent[], kinds: readonly string[]) => events.findLast((event) => kinds.includes(event.kind))?.seq ?? 0;

/** The place to say more. */
export function Composer({ id, session, events, onSent }: ComposerProps) {
  const [draft, setDraft] = useState<Draft>(() => readDraft(id));
  const [dropping, setDropping] = useState(false);
  const toasts = useToasts();
  const stop = useStop();
  const { take } = useRoster();
  const notifying = useNotifying();
  const pictures = usePictures();
  const offer = useAnswer<AgentOffer>(`/v1/sessions/${encodeURIComponent(id)}/offer`);
  const suggesting = useSuggestions(offer.value?.commands ?? []);
  const field = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const returned = useRef<Letter | null>(null);
  const sent = useRef<Letter | null>(null);
  const caret = useRef<number | null>(null);
  const busy = session?.status === "working" || session?.status === "needs_you" || session?.status === "queued";
  const stopped = stop.value?.stopped === true;
  const files = namedFiles(draft.text, draft.picked);
  const empty = draft.text.trim() === "";

  const told = lastOf(events, ["options", "commands"]);
  const { reload } = offer;
  useEffect(() => {
    if (told > 0) reload();
  }, [told, reload]);

  function write(next: Draft) {
    setDraft(next);
    keepDraft(id, next);
  }

  const outbox = useOutbox(id, {
    taken: (letter) => {
      sent.current = letter;
      onSent();
    },
    refused: (letter, error) => {
      toasts.failed(error);
      giveBack(letter);
    },
  });

  /** Back to where it was written, before whatever has been written since. */
  function giveBack(letter: Letter) {
    returned.current = letter;
    setDraft((now) => {
      const next = { text: now.text.trim() === "" ? letter.text : `${letter.text}\n${now.text}`, picked: [...letter.files, ...now.picked] };
      keepDraft(id, next);
      return next;
    });
  }

  const dropped = events.findLast((event) => event.kind === "dropped")?.data["key"];
  useEffect(() => {
    const letter = sent.current;
    if (letter === null || letter.key !== dropped) return;
    // Stopped before it reached the agent: it can be mended and sent anew, as another prompt.
    sent.current = null;
    giveBack(letter);
    returned.current = null;
  }, [dropped]);

  function send(when: Letter["when"]) {
    if (empty || stopped) return;
    const letter = { text: draft.text.trim(), files, images: pictures.all.map(({ mime, data }) => ({ mime, data })) };
    outbox.send({ ...letter, key: keyFor(letter, returned.current, () => crypto.randomUUID()), when });
    returned.current = null;
    write(EMPTY);
    pictures.clear();
    suggesting.look("", 0);
    onSent();
  }

  function cancel() {
    request<SessionView>(`/v1/sessions/${encodeURIComponent(id)}/cancel`, { method: "POST", body: {} }).then(take).catch(toasts.failed);
  }

  function pick(index: number) {
    const done = suggesting.pick(index);
    if (done === null) return;
    write({ text: done.text, picked: done.file === null ? draft.picked : [...draft.picked, done.file] });
    caret.current = done.caret;
    field.current?.focus();
  }

  useLayoutEffect(() => {
    const box = field.current;
    if (box === null) return;
    if (caret.current !== null) box.setSelectionRange(caret.current, caret.current);
    caret.current = null;
    if (CSS.supports("field-sizing", "content")) return;
    box.style.height = "auto";
    box.style.height = `${box.scrollHeight + 2}px`;
  }, [draft.text]);

  useEscape(busy, cancel);

  function keys(event: KeyboardEvent<HTMLTextAreaElement>) {
    if (event.nativeEvent.isComposing) return;
    const arrow = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : null;
    if (suggesting.active && arrow !== null) suggesting.step(arrow);
    else if (suggesting.active && (event.key === "Tab" || (event.key === "Enter" && !event.shiftKey && !isWhole()))) pick(suggesting.chosen);
    else if (suggesting.token !== null && event.key === "Escape") suggesting.close();
    else if (event.key === "Enter" && !event.shiftKey) send(busy ? (event.ctrlKey || event.metaKey ? "steer" : "queue") : "now");
    else if (event.key === "Escape" && busy) cancel();
    else return;
    event.preventDefault();
  }

  /** A command that is typed to its end is sent by Enter, not completed once more. */
  function isWhole(): boolean {
    return suggesting.token?.kind === "command" && suggesting.all[suggesting.chosen]?.word === suggesting.token.query;
  }

  function paste(event: ClipboardEvent) {
    const images = [...event.clipboardData.files].filter((file) => file.type.startsWith("image/"));
    if (images.length === 0) return;
    event.preventDefault();
    void pictures.add(images);
  }

  function drop(event: DragEvent) {
    setDropping(false);
    if (event.dataTransfer.files.length === 0) return;
    event.preventDefault();
    void pictures.add([...event.dataTransfer.files]);
  }

  if (session?.archived) return <ArchivedNote session={session} />;
  const option = suggesting.active ? optionId(suggesting.chosen) : undefined;
  return (
    <form
      className="composer"
      data-dropping={dropping || undefined}
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        send(busy ? "queue" : "now");
      }}
      onDragOver={(event) => {
        if (!event.dataTransfer.types.includes("Files")) return;
        event.preventDefault();
        setDropping(true);
      }}
      onDragLeave={() => setDropping(false)}
      onDrop={drop}
    >
      <BudgetNotice />
      {outbox.stuck.map((letter) => (
        <div key={letter.key} className="composer-note" role="status">
          <span className="spinner" aria-hidden="true" />
          <p>
            Not sent yet; it goes by itself once Freehold answers: <q>{letter.text}</q>
          </p>
          <button
            type="button"
            className="small"
            onClick={() => {
              outbox.takeBack(letter);
              giveBack(letter);
            }}
          >
            Take back
          </button>
        </div>
      ))}
      <div className="composer-box">
        {suggesting.token !== null && <Suggestions label={suggesting.token.kind === "file" ? "Files" : "Commands of the agent"} all={suggesting.all} chosen={suggesting.chosen} note={suggesting.note} onPick={pick} />}
        {(files.length > 0 || pictures.all.length > 0) && (
          <ul className="composer-along" aria-label="Goes along">
            {pictures.all.map((picture) => (
              <li key={picture.id} className="thumb">
                <img src={picture.url} alt={picture.name} />
                <RemoveButton what={picture.name} onClick={() => pictures.remove(picture.id)} />
              </li>
            ))}
            {files.map((path) => (
              <li key={path} className="along-file">
                <Icon name="file" size={14} />
                <span className="path">{unhidden(path)}</span>
                <RemoveButton what={path} onClick={() => write({ ...draft, text: withoutFile(draft.text, path) })} />
              </li>
            ))}
          </ul>
        )}
        <textarea
          ref={field}
          aria-label="Message"
          autoFocus={session?.seq === 0 && matchMedia("(hover: hover)").matches}
          aria-autocomplete="list"
          aria-controls={suggesting.active ? LIST : undefined}
          aria-activedescendant={option}
          placeholder={stopped ? "Everything is stopped" : busy ? "Say what comes next" : "What shall be done? (@ file, / command)"}
          rows={1}
          value={draft.text}
          onChange={(event) => {
            write({ ...draft, text: event.target.value });
            suggesting.look(event.target.value, event.target.selectionStart);
          }}
          onSelect={(event) => suggesting.look(event.currentTarget.value, event.currentTarget.selectionStart)}
          onBlur={() => suggesting.look("", 0)}
          onKeyDown={keys}
          onPaste={paste}
        />
        <div className="composer-foot">
          <button type="button" className="plain-button" aria-label="Add images" title="Add images; they can also be pasted or dropped" onClick={() => picker.current?.click()}>
            <Icon name="plus" size={18} />
          </button>
          <input
            ref={picker}
            type="file"
            accept="image/*"
            multiple
            hidden
            aria-label="Images"
            onChange={(event) => {
              void pictures.add([...(event.target.files ?? [])]);
              event.target.value = "";
            }}
          />
          <OptionsButton id={id} offer={offer.value} onChosen={reload} />
          <span className="composer-space" />
          {busy && (
            <button type="button" className="small danger" title="Stop what it does, and forget what waits behind it (Esc)" onClick={cancel}>
              Stop
            </button>
          )}
          {busy && (
            <button type="button" className="small" title="Stop what it does and take this up at once (Ctrl Enter)" disabled={empty || stopped} onClick={() => send("steer")}>
              Steer
            </button>
          )}
          <button className="small primary" title={busy ? "It is taken up when this is done (Enter)" : "Send (Enter)"} disabled={empty || stopped}>
            {busy ? "Queue" : "Send"}
          </button>
        </div>
      </div>
      {busy && (
        <p className="composer-keys">
          <span aria-hidden="true">
            <kbd>Enter</kbd> waits until this is done · <kbd>Ctrl Enter</kbd> stops it and goes first · <kbd>Esc</kbd> stops
          </span>
          {notifying === "ask" && (
            <button type="button" className="text-button" onClick={() => void turnOn()}>
              Notify me when it is done
            </button>
          )}
        </p>
      )}
    </form>
  );
}

function RemoveButton({ what, onClick }: { what: string; onClick: () => void }) {
  return (
    <button type="button" className="plain-button" aria-label={`Leave out ${unhidden(what)}`} onClick={onClick}>
      <Icon name="close" size={14} />
    </button>
  );
}

function ArchivedNote({ session }: { session: SessionView }) {
  const { take } = useRoster();
  const toasts = useToasts();
  return (
    <div className="composer">
      <div className="composer-note">
        <p>This session is archived.</p>
        <button
          className="small"
          onClick={() =>
            void request<SessionView>(`/v1/sessions/${encodeURIComponent(session.id)}`, { method: "PATCH", body: { archived: false } })
              .then(take)
              .catch(toasts.failed)
          }
        >
          Take it out
        </button>
      </div>
    </div>
  );
}

/** Esc stops the agent from wherever on the page nothing else wants the key. */
function useEscape(busy: boolean, cancel: () => void) {
  const latest = useRef(cancel);
  useEffect(() => {
    latest.current = cancel;
  });
  useEffect(() => {
    if (!busy) return;
    function pressed(event: globalThis.KeyboardEvent) {
      const target = event.composedPath()[0];
      const taken = event.defaultPrevented || isTyping(target ?? null) || (target instanceof Element && target.closest("[role=menu], [role=dialog]") !== null);
      if (event.key === "Escape" && !taken && document.querySelector("dialog[open], [role=menu]") === null) latest.current();
    }
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, [busy]);
}
