import { type FormEvent, useState } from "react";
import type { WorkflowStep } from "../../client/api";
import { ConfirmButton } from "../../ui/ConfirmButton";
import { shorten } from "../../ui/format";
import { go } from "../../ui/route";
import { visibleText } from "../../ui/visibleText";
import { formatCost } from "../routines/routines.logic";
import { firstLine, showResult, stepWord, timeText, toneOf } from "./workflows.logic";

interface StepItemProps {
  step: WorkflowStep;
  isBusy: boolean;
  canRetry: boolean;
  onAnswer: (answer: string) => void;
  onRetry: () => void;
}

/** One step: how it went, what it changed, and the question that it asks. */
export function StepItem({ step, isBusy, canRetry, onAnswer, onRetry }: StepItemProps) {
  const result = step.state === "done" ? shorten(showResult(step), 400) : "";
  const title = firstLine(step.title);
  return (
    <li className="card" aria-label={`Step ${step.place}`}>
      <p className="workflows-title">
        {step.place} · {step.kind} · <span className="workflows-text">{visibleText(title)}</span>
      </p>
      <p className="quiet workflows-facts">
        <span className="workflows-state" data-tone={toneOf(step.state)}>
          {stepWord(step)}
        </span>
        {timeText(step) !== "" && <span>{timeText(step)}</span>}
        {step.cost !== null && <span>{formatCost(step.cost)}</span>}
        {step.attempt > 1 && <span>try {step.attempt}</span>}
      </p>
      {step.error !== null && <p className="problem-text workflows-text">{visibleText(step.error)}</p>}
      {step.question !== null && step.question !== title && (
        <p className="workflows-question">{visibleText(step.question)}</p>
      )}
      {result !== "" && <pre className="workflows-output">{visibleText(result)}</pre>}
      {step.files.length > 0 && (
        <ul className="workflows-files" aria-label="Changed files">
          {step.files.map((one) => (
            <li key={one.path}>
              {one.word} {visibleText(one.path)}
            </li>
          ))}
          {step.files_total > step.files.length && <li>and {step.files_total - step.files.length} more</li>}
        </ul>
      )}
      {step.kind === "ask" && step.state === "waiting" && (
        <AnswerForm choices={step.choices} isBusy={isBusy} onAnswer={onAnswer} />
      )}
      <div className="workflows-facts">
        {step.session !== null && (
          <button type="button" className="small" onClick={() => go(`/sessions?id=${step.session}`)}>
            Open session
          </button>
        )}
        {canRetry && (
          <ConfirmButton
            label="Retry from here"
            confirmLabel="Repeat this and all later steps?"
            spoken={`Retry from step ${step.place}`}
            disabled={isBusy}
            onConfirm={onRetry}
          />
        )}
      </div>
    </li>
  );
}

interface AnswerFormProps {
  choices: string[];
  isBusy: boolean;
  onAnswer: (answer: string) => void;
}

function AnswerForm({ choices, isBusy, onAnswer }: AnswerFormProps) {
  const [text, setText] = useState("");

  function send(event: FormEvent) {
    event.preventDefault();
    onAnswer(text);
  }

  if (choices.length > 0) {
    return (
      <div className="workflows-facts">
        {choices.map((choice) => (
          <button key={choice} type="button" disabled={isBusy} onClick={() => onAnswer(choice)}>
            {visibleText(choice)}
          </button>
        ))}
      </div>
    );
  }
  return (
    <form className="workflows-run" onSubmit={send}>
      <label>
        Your answer
        <input required maxLength={10_000} value={text} onChange={(event) => setText(event.target.value)} />
      </label>
      <button type="submit" disabled={isBusy}>
        Answer
      </button>
    </form>
  );
}
