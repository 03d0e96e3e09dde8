import { type ClipboardEvent, type KeyboardEvent, type ReactNode, useLayoutEffect, useRef } from "react";
import type { OfferedCommand } from "../../../client/api";
import { LARGE_PASTE } from "./attachments.logic";
import { LIST_ID, optionId, SuggestionList } from "./SuggestionList";
import type { ComposerState } from "./useComposer";
import { useSuggestions } from "./useSuggestions";

interface MessageFieldProps {
  composer: ComposerState;
  commands: readonly OfferedCommand[];
  /** Whether nothing was said in the session yet. */
  isNew: boolean;
  /** Shown between the suggestions and the field. */
  children: ReactNode;
}

/** The field for the message. It completes files after `@` and commands after `/`. */
export function MessageField({ composer, commands, isNew, children }: MessageFieldProps) {
  const { draft, setDraft, busy, stopped, attach, send, cancel } = composer;
  const suggestions = useSuggestions(commands);
  const field = useRef<HTMLTextAreaElement>(null);
  const caret = useRef<number | null>(null);

  function accept(index: number) {
    const completion = suggestions.accept(index);
    if (completion === null) return;
    const { text, file } = completion;
    setDraft({ text, picked: file === null ? draft.picked : [...draft.picked, file] });
    caret.current = completion.caret;
    field.current?.focus();
  }

  // biome-ignore lint/correctness/useExhaustiveDependencies: the height follows the text
  useLayoutEffect(() => {
    const box = field.current;
    if (box === null) return;
    if (caret.current !== null) box.setSelectionRange(caret.current, caret.current);
    caret.current = null;
    if (CSS.supports("field-sizing", "content")) return;
    box.style.height = "auto";
    box.style.height = `${box.scrollHeight + 2}px`;
  }, [draft.text]);

  function handleKey(event: KeyboardEvent<HTMLTextAreaElement>) {
    if (event.nativeEvent.isComposing) return;
    const arrow = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : null;
    const isEnter = event.key === "Enter" && !event.shiftKey;
    if (suggestions.active && arrow !== null) suggestions.step(arrow);
    // A command that is typed in full is sent by Enter and not completed again.
    else if (suggestions.active && (event.key === "Tab" || (isEnter && !suggestions.isComplete)))
      accept(suggestions.chosen);
    else if (suggestions.token !== null && event.key === "Escape") suggestions.close();
    else if (isEnter) submit(event.ctrlKey || event.metaKey);
    else if (event.key === "Escape" && busy) cancel();
    else return;
    event.preventDefault();
  }

  function submit(interrupt: boolean) {
    send(busy ? (interrupt ? "steer" : "queue") : "now");
    suggestions.update("", 0);
  }

  function paste(event: ClipboardEvent) {
    const files = [...event.clipboardData.files];
    const text = event.clipboardData.getData("text/plain");
    // A program that copies text may put a picture of it beside: then the text is meant.
    if (text.length > LARGE_PASTE)
      files.splice(0, files.length, new File([text], "pasted.txt", { type: "text/plain" }));
    if (files.length === 0) return;
    event.preventDefault();
    attach(files);
  }

  return (
    <>
      {suggestions.token !== null && (
        <SuggestionList
          label={suggestions.token.kind === "file" ? "Files" : "Commands of the agent"}
          suggestions={suggestions.all}
          chosen={suggestions.chosen}
          note={suggestions.note}
          onAccept={accept}
        />
      )}
      {children}
      <textarea
        ref={field}
        aria-label="Message"
        autoFocus={isNew && matchMedia("(hover: hover)").matches}
        aria-autocomplete="list"
        aria-controls={suggestions.active ? LIST_ID : undefined}
        aria-activedescendant={suggestions.active ? optionId(suggestions.chosen) : undefined}
        placeholder={placeholderFor(stopped, busy)}
        rows={1}
        value={draft.text}
        onChange={(event) => {
          setDraft({ ...draft, text: event.target.value });
          suggestions.update(event.target.value, event.target.selectionStart);
        }}
        onSelect={(event) => suggestions.update(event.currentTarget.value, event.currentTarget.selectionStart)}
        onBlur={() => suggestions.update("", 0)}
        onKeyDown={handleKey}
        onPaste={paste}
      />
    </>
  );
}

function placeholderFor(stopped: boolean, busy: boolean): string {
  if (stopped) return "All agents are stopped";
  return busy ? "Describe the next task" : "Describe a task (@ file, / command)";
}
