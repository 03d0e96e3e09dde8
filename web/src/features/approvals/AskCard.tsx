import { useEffect, useRef, useState, type FormEvent, type ReactNode } from "react";
import { Icon } from "../../ui/Icon";
import { unhidden } from "../../ui/unhidden";
import { isTyping } from "../shell/shortcuts";
import { answerOf, linesIn, SEEN_FOR, wasSeen, type Ask, type Choice, type Keys, type Part } from "./approvals.logic";

/** Characters of an answer that fit beside others on a phone. */
const SHORT = 14;

export interface Stack {
  index: number;
  count: number;
  step: (by: 1 | -1) => void;
}

interface CardProps {
  label: string;
  heading: ReactNode;
  stack: Stack | null;
  choices: readonly { label: string; means: string; tone: "yes" | "more" | "no" }[];
  keys: Keys;
  /** Puts it aside, where that can be. */
  onLater?: () => void;
  onChoose: (index: number) => Promise<void> | void;
  children?: ReactNode;
  /** What else can be said, below the answers. */
  foot?: ReactNode;
}

/** One question to the owner, whoever asks. Drawn by us alone, in the same way everywhere. Give it the question as its key. */
export function QuestionCard({ label, heading, stack, choices, keys, onLater, onChoose, children, foot }: CardProps) {
  const [armed, setArmed] = useState(false);
  const [busy, setBusy] = useState(false);
  const card = useRef<HTMLElement>(null);
  useEffect(() => {
    const timer = setTimeout(() => setArmed(true), SEEN_FOR);
    return () => clearTimeout(timer);
  }, []);
  const seenSince = useRef<number | null>(null);
  useEffect(() => {
    const look = () => {
      seenSince.current = document.hidden ? null : performance.now();
    };
    look();
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, []);
  const ready = armed && !busy;

  async function choose(index: number) {
    if (!ready) return;
    setBusy(true);
    try {
      await onChoose(index);
    } finally {
      setBusy(false);
    }
  }

  const latest = useRef(choose);
  useEffect(() => {
    latest.current = choose;
  });
  useEffect(() => {
    if (keys === "none") return;
    function pressed(event: KeyboardEvent) {
      if (event.defaultPrevented || event.repeat || event.isComposing || document.querySelector("dialog[open]") !== null) return;
      const { key, code, altKey, ctrlKey, metaKey, shiftKey } = event;
      const target = event.composedPath()[0] ?? null;
      // A terminal and an editor have a meaning of their own for every key, with Alt too.
      if (target instanceof Element && target.closest("[data-keys]") !== null) return;
      const typing = keys === "alt" || isTyping(target);
      const index = answerOf({ key, code, altKey, ctrlKey, metaKey, shiftKey, typing }, choices.length);
      if (index === null) return;
      event.preventDefault();
      if (wasSeen(seenSince.current, event.timeStamp)) void latest.current(index);
    }
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, [keys, choices.length]);

  return (
    <section ref={card} className="ask" role="alertdialog" aria-label={label} tabIndex={-1}>
      <header className="ask-head">
        <Icon name="warning" size={18} />
        <p>{heading}</p>
        {stack !== null && stack.count > 1 && (
          <div className="ask-stack">
            <button className="plain-button" onClick={() => stack.step(-1)} aria-label="The question before">
              <Icon name="back" size={16} />
            </button>
            <span>
              {stack.index + 1} of {stack.count}
            </span>
            <button className="plain-button" onClick={() => stack.step(1)} aria-label="The next question">
              <Icon name="chevron" size={16} />
            </button>
          </div>
        )}
        {onLater && (
          <button className="text-button ask-later" onClick={onLater} title="Puts it aside; it keeps waiting">
            Later
          </button>
        )}
      </header>
      {children}
      <div className="ask-replies" data-long={choices.some((choice) => choice.label.length > SHORT) || undefined}>
        {choices.map((choice, index) => (
          <button key={`${index} ${choice.label}`} className={`small ${choice.tone === "yes" ? "primary" : choice.tone === "no" ? "danger" : ""}`} title={choice.means} disabled={!ready} onClick={() => void choose(index)}>
            <span>{unhidden(choice.label)}</span>
            {keys !== "none" && index < 9 && <kbd aria-hidden="true">{keys === "alt" ? `Alt ${index + 1}` : index + 1}</kbd>}
          </button>
        ))}
        {foot}
      </div>
    </section>
  );
}

interface AskCardProps {
  ask: Ask;
  stack: Stack | null;
  keys: Keys;
  onLater?: () => void;
  /** The session it is asked in, where that is not plain to see. */
  from?: ReactNode;
  onAnswer: (choice: Pick<Choice, "answer" | "note">) => Promise<void>;
}

/** What an agent asks: our words around it, and exactly what it would do. */
export function AskCard({ ask, stack, keys, onLater, from, onAnswer }: AskCardProps) {
  const [words, setWords] = useState("");
  const [refusing, setRefusing] = useState(false);
  const asksForWords = ask.free || refusing;

  async function say(event: FormEvent) {
    event.preventDefault();
    const note = words.trim();
    if (note !== "") await onAnswer({ answer: refusing ? "reject" : "once", note });
  }

  return (
    <QuestionCard
      label="The agent asks"
      heading={
        <>
          <strong>The agent wants to {ask.wants}</strong>
          {from}
        </>
      }
      stack={stack}
      choices={ask.replies}
      keys={keys}
      {...(onLater && { onLater })}
      onChoose={(index) => {
        const choice = ask.replies[index];
        return choice === undefined ? undefined : onAnswer(choice);
      }}
      foot={
        asksForWords ? (
          <form className="ask-words" onSubmit={(event) => void say(event)}>
            <input aria-label={refusing ? "What to do instead" : "Your answer"} placeholder={refusing ? "What it should do instead" : "Your answer"} maxLength={2000} value={words} onChange={(event) => setWords(event.target.value)} autoFocus={refusing} />
            <button className="small" disabled={words.trim() === ""}>
              {refusing ? "No, do this" : "Answer"}
            </button>
          </form>
        ) : (
          ask.replies.some((choice) => choice.answer === "always") && (
            <button className="text-button ask-instead" onClick={() => setRefusing(true)}>
              No, and tell it what to do instead
            </button>
          )
        )
      }
    >
      {ask.title !== "" && <p className="ask-title">It calls this “{unhidden(ask.title)}”</p>}
      <Parts parts={ask.parts} />
    </QuestionCard>
  );
}

/** Everything that is asked for; when not all of it is seen, that is said. */
function Parts({ parts }: { parts: readonly Part[] }) {
  const box = useRef<HTMLDivElement>(null);
  const [below, setBelow] = useState(false);
  useEffect(() => {
    const shown = box.current;
    if (shown === null) return;
    const look = () => setBelow(shown.scrollHeight - shown.scrollTop - shown.clientHeight > 8);
    const watcher = new ResizeObserver(look);
    watcher.observe(shown);
    shown.addEventListener("scroll", look);
    look();
    return () => {
      watcher.disconnect();
      shown.removeEventListener("scroll", look);
    };
  }, [parts]);
  return (
    <>
      <div ref={box} className="ask-parts" data-below={below || undefined}>
        {parts.map((part, index) => (
          <AskPart key={index} part={part} />
        ))}
      </div>
      {below && (
        <button className="text-button ask-below" onClick={() => box.current?.scrollTo({ top: box.current.scrollHeight })}>
          Not all of it is seen: {linesIn(parts)} lines. Go to the end
        </button>
      )}
    </>
  );
}

const SIGNS = { added: "+", removed: "−", same: " ", gap: "⋯" } as const;

function AskPart({ part }: { part: Part }) {
  if (part.kind !== "diff")
    return (
      <figure data-kind={part.kind}>
        <figcaption>{part.label}</figcaption>
        <pre tabIndex={0} role="group" aria-label={part.label}>
          {unhidden(part.text)}
        </pre>
      </figure>
    );
  return (
    <figure data-kind="diff">
      <figcaption>
        <code className="path">{unhidden(part.label)}</code>
      </figcaption>
      <pre tabIndex={0} role="group" aria-label={`The change to ${unhidden(part.label)}`}>
        {part.lines.map((line, index) => (
          <span key={index} className="ask-line" data-kind={line.kind}>
            <span aria-hidden="true">{SIGNS[line.kind]}</span>
            {line.kind !== "same" && line.kind !== "gap" && <span className="unseen">{line.kind}: </span>}
            {unhidden(line.text)}
            {"\n"}
          </span>
        ))}
      </pre>
    </figure>
  );
}
