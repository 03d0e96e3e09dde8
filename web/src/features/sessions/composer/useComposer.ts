import { useCallback, useEffect, useRef, useState } from "react";
import type { SessionEvent, SessionInfo } from "../../../client/api";
import { request, upload } from "../../../client/http";
import { useToasts } from "../../../ui/Toasts";
import { contentPath } from "../../files/fileRequests";
import { useKillSwitch } from "../../kill-switch/KillSwitchProvider";
import { useSessionList } from "../../session-list/SessionListProvider";
import { isBusy } from "../../session-list/sessionList.logic";
import { attachmentPath, isImage, withFiles } from "./attachments.logic";
import { type Draft, EMPTY_DRAFT, readDraft, writeDraft } from "./draft";
import { keyFor, type OutgoingPrompt } from "./outbox.logic";
import { takeHeldPictures } from "./sharedPictures";
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
  /** A prompt that was handed back unchanged keeps its key when it is sent again. */
  const handedBack = useRef<OutgoingPrompt | null>(null);
  const accepted = useRef<OutgoingPrompt | null>(null);
  const files = namedFiles(draft.text, draft.picked);
  const canSend = (draft.text.trim() !== "" || images.all.length > 0) && !stopped;

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
    const shared = takeHeldPictures();
    if (shared.length > 0) void addImages(shared);
  }, [addImages]);

  async function attach(files: readonly File[]) {
    void images.add(files.filter(isImage));
    const now = new Date();
    for (const [index, file] of files.filter((one) => !isImage(one)).entries()) {
      const path = attachmentPath(file.name, now, index);
      try {
        await upload(contentPath(path), file, { "if-none-match": "*" });
        setDraftState((current) => {
          const next = { text: withFiles(current.text, [path]), picked: [...current.picked, path] };
          writeDraft(id, next);
          return next;
        });
      } catch (error) {
        toasts.failed(error);
      }
    }
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
    attach: (files) => void attach(files),
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
