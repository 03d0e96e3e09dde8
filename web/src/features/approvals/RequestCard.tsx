import { type ReactNode, useEffect, useState } from "react";
import { Icon } from "../../ui/Icon";
import { shortLine } from "../../ui/plainText.logic";
import { visibleText } from "../../ui/visibleText";
import { type KeyMode, MIN_VISIBLE } from "./answerKeys.logic";
import { useAnswerKeys } from "./useAnswerKeys";

/** A longer label needs a row of its own on a phone. */
const MAX_SHORT_LABEL = 17;
const MAX_LABEL = 500;

/** The position of a request among all open ones, and how to show another one. */
export interface RequestStack {
  index: number;
  count: number;
  step: (by: 1 | -1) => void;
}

interface RequestCardProps {
  label: string;
  heading: ReactNode;
  stack: RequestStack | null;
  choices: readonly { label: string; effect: string; tone: "yes" | "more" | "no" }[];
  keyMode: KeyMode;
  /** Hides the request without an answer, where that is possible. */
  onHide?: () => void;
  onChoose: (index: number) => Promise<void> | void;
  children?: ReactNode;
  /** Which sessions an answer holds for. */
  grantNote?: string;
  /** What the owner must know before the answer. */
  warnings?: readonly string[];
  /** Shown after the answers. */
  foot?: ReactNode;
}

/** A request to the owner. All requests look the same. The request must be the card's key. */
export function RequestCard({
  label,
  heading,
  stack,
  choices,
  keyMode,
  onHide,
  onChoose,
  children,
  grantNote = "",
  warnings = [],
  foot,
}: RequestCardProps) {
  const [seen, setSeen] = useState(false);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSeen(true), MIN_VISIBLE);
    return () => clearTimeout(timer);
  }, []);
  const ready = seen && !busy;

  async function choose(index: number) {
    if (!ready) return;
    setBusy(true);
    try {
      await onChoose(index);
    } finally {
      setBusy(false);
    }
  }

  useAnswerKeys(keyMode, choices.length, (index) => void choose(index));

  return (
    <section className="approvals-card" role="alertdialog" aria-label={label} tabIndex={-1}>
      <header className="approvals-head">
        <Icon name="warning" size={18} />
        <p>{heading}</p>
        {stack !== null && stack.count > 1 && (
          <div className="approvals-stack">
            <button type="button" className="plain-button" onClick={() => stack.step(-1)} aria-label="Previous request">
              <Icon name="back" size={16} />
            </button>
            <span>
              {stack.index + 1} of {stack.count}
            </span>
            <button type="button" className="plain-button" onClick={() => stack.step(1)} aria-label="Next request">
              <Icon name="chevron" size={16} />
            </button>
          </div>
        )}
        {onHide && (
          <button
            type="button"
            className="text-button approvals-hide"
            onClick={onHide}
            title="Hide it for now. It still waits for your answer."
          >
            Later
          </button>
        )}
      </header>
      {children}
      {warnings.length > 0 && (
        <div className="approvals-warnings">
          {warnings.map((warning) => (
            <p key={warning} className="approvals-warning">
              <Icon name="warning" size={16} /> {warning}
            </p>
          ))}
        </div>
      )}
      {grantNote !== "" && <p className="approvals-grant">{grantNote}</p>}
      <div
        className="approvals-answers"
        data-long={choices.some((choice) => choice.label.length > MAX_SHORT_LABEL) || undefined}
      >
        {choices.map((choice, index) => (
          <button
            key={`${index} ${choice.label}`}
            type="button"
            className={`small ${choice.tone === "yes" ? "primary" : choice.tone === "no" ? "danger" : ""}`}
            title={choice.effect}
            disabled={!ready}
            onClick={() => void choose(index)}
          >
            <span>{visibleText(shortLine(choice.label, MAX_LABEL))}</span>
            {keyMode !== "none" && index < 9 && (
              <kbd aria-hidden="true">{keyMode === "alt" ? `Alt ${index + 1}` : index + 1}</kbd>
            )}
          </button>
        ))}
        {foot}
      </div>
    </section>
  );
}
