import { useCallback, useEffect, useRef, useState, useSyncExternalStore } from "react";
import type { SessionEvent, SessionInfo } from "../../../client/api";
import { request } from "../../../client/http";
import { useToasts } from "../../../ui/Toasts";
import { useKillSwitch } from "../../kill-switch/KillSwitchProvider";
import { useSessionList } from "../../session-list/SessionListProvider";
import { isBusy } from "../../session-list/sessionList.logic";
import { isImage } from "./attachments.logic";
import {
  type AttachmentUpload,
  listenToUploads,
  takeUploads,
  uploadAttachments,
  uploadsOf,
  withUploaded,
} from "./attachmentUploads";
import { type Draft, EMPTY_DRAFT, readDraft, writeDraft } from "./draft";
import { keyFor, type OutgoingPrompt } from "./outbox.logic";
import { takeHeldFiles } from "./sharedFiles";
import { namedFiles, withoutFile } from "./suggestions.logic";
import { type ImageAttachments, useImages } from "./useImages";
import { useOutbox } from "./useOutbox";

export interface ComposerState {
  draft: Draft;
  setDraft: (draft: Draft) => void;
  /** The picked files that the text names. */
  files: readonly string[];
  removeFile: (path: string) => void;
  images: ImageAttachments;
  /** Adds images to the message. Other files are put into the workspace, and the message names them. */
  attach: (files: readonly File[]) => void;
  /** Files from another app. Any page of the web can send some, so they are added only when the owner says so. */
  shared: readonly File[];
  answerShared: (isWanted: boolean) => void;
  /** The files that have not arrived yet. Nothing is sent before them. */
  uploads: readonly AttachmentUpload[];
  /** Whether the agent of the session works or has work waiting. */
  busy: boolean;
  stopped: boolean;
  canSend: boolean;
  send: (when: OutgoingPrompt["when"]) => void;
  /** Stops the agent and drops what is queued. */
  cancel: () => void;
  /** The owner has stopped the agent, and it has not ended yet. */
  isStopping: boolean;
  unsent: readonly OutgoingPrompt[];
  takeBack: (prompt: OutgoingPrompt) => void;
}

export interface StopState {
  isStopping: boolean;
  onStopping: (isStopping: boolean) => void;
}

/** The message that is being written for a session, and how it is sent. */
export function useComposer(
  id: string,
  session: SessionInfo | null,
  events: readonly SessionEvent[],
  onSent: () => void,
  { isStopping, onStopping }: StopState,
): ComposerState {
  const [draft, setDraftState] = useState<Draft>(() => readDraft(id));
  const toasts = useToasts();
  const { stopped } = useKillSwitch();
  const { receive } = useSessionList();
  const images = useImages();
  const [shared, setShared] = useState<readonly File[]>([]);
  /** A prompt that was handed back unchanged keeps its key when it is sent again. */
  const handedBack = useRef<OutgoingPrompt | null>(null);
  const accepted = useRef<OutgoingPrompt | null>(null);
  const files = namedFiles(draft.text, draft.picked);
  const uploads = useSyncExternalStore(listenToUploads, () => uploadsOf(id));
  const isArriving = uploads.length > 0 || images.isReading;
  const canSend = (draft.text.trim() !== "" || images.all.length > 0) && !stopped && !isArriving;

  const setDraft = useCallback(
    (next: Draft) => {
      setDraftState(next);
      writeDraft(id, next);
    },
    [id],
  );

  /** Puts a prompt back into the field, before anything that was typed since. */
  const putBack = useCallback(
    (prompt: OutgoingPrompt) => {
      setDraftState((current) => {
        const text = current.text.trim() === "" ? prompt.text : `${prompt.text}\n${current.text}`;
        const next = { text, picked: [...prompt.files, ...current.picked] };
        writeDraft(id, next);
        return next;
      });
    },
    [id],
  );

  const outbox = useOutbox(id, {
    accepted: (prompt) => {
      accepted.current = prompt;
      onSent();
    },
    refused: (prompt, error) => {
      toasts.failed(error);
      handedBack.current = prompt;
      putBack(prompt);
    },
  });

  const dropped = events.findLast((event) => event.kind === "dropped")?.data["key"];
  useEffect(() => {
    const prompt = accepted.current;
    if (prompt === null || prompt.key !== dropped) return;
    // It was dropped before it reached the agent. Sent again, it is another prompt.
    accepted.current = null;
    handedBack.current = null;
    putBack(prompt);
  }, [dropped, putBack]);

  const addImages = images.add;
  useEffect(() => {
    const held = takeHeldFiles();
    if (held.length === 0) return;
    void addImages(held.filter(isImage));
    setShared(held.filter((one) => !isImage(one)));
  }, [addImages]);

  useEffect(
    () =>
      takeUploads(id, (path) =>
        setDraftState((current) => {
          const next = withUploaded(current, path);
          writeDraft(id, next);
          return next;
        }),
      ),
    [id],
  );

  function attach(files: readonly File[]) {
    void images.add(files.filter(isImage));
    const others = files.filter((one) => !isImage(one));
    if (others.length > 0) void uploadAttachments(id, others, toasts.failed);
  }

  function send(when: OutgoingPrompt["when"]) {
    if (!canSend) return;
    const prompt = {
      text: draft.text.trim(),
      files,
      images: images.all.map(({ mime, data }) => ({ mime, data })),
    };
    const key = keyFor(prompt, handedBack.current, () => crypto.randomUUID());
    outbox.send({ ...prompt, key, when });
    handedBack.current = null;
    setDraft(EMPTY_DRAFT);
    images.clear();
    onSent();
  }

  function cancel() {
    onStopping(true);
    request<SessionInfo>(`/v1/sessions/${encodeURIComponent(id)}/cancel`, { method: "POST", body: {} })
      .then(receive)
      .catch((error: unknown) => {
        onStopping(false);
        toasts.failed(error);
      });
  }

  return {
    draft,
    setDraft,
    files,
    removeFile: (path) => setDraft({ ...draft, text: withoutFile(draft.text, path) }),
    images,
    attach,
    shared,
    answerShared: (isWanted) => {
      if (isWanted) attach(shared);
      setShared([]);
    },
    uploads,
    busy: isBusy(session),
    stopped,
    canSend,
    send,
    cancel,
    isStopping,
    unsent: outbox.unsent,
    takeBack: (prompt) => {
      outbox.takeBack(prompt);
      handedBack.current = prompt;
      putBack(prompt);
    },
  };
}
