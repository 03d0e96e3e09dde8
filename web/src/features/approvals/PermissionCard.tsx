import { type FormEvent, type ReactNode, useState } from "react";
import { shortLine } from "../../ui/plainText.logic";
import { visibleText } from "../../ui/visibleText";
import type { KeyMode } from "./answerKeys.logic";
import type { AnswerChoice, PermissionRequest } from "./approvals.logic";
import { PermissionDetails } from "./PermissionDetails";
import { RequestCard, type RequestStack } from "./RequestCard";

interface PermissionCardProps {
  request: PermissionRequest;
  stack: RequestStack | null;
  keyMode: KeyMode;
  onHide?: () => void;
  /** The session that asks, where the page does not show it already. */
  from?: ReactNode;
  onAnswer: (choice: Pick<AnswerChoice, "answer" | "note">) => Promise<void>;
}

/** A permission request of an agent: our words around it, and exactly what the agent would do. */
export function PermissionCard({ request, stack, keyMode, onHide, from, onAnswer }: PermissionCardProps) {
  const [note, setNote] = useState("");
  const [refusing, setRefusing] = useState(false);
  const hasNoteField = request.acceptsText || refusing;
  const isQuestion = request.details.some((detail) => detail.kind === "question");

  async function sendNote(event: FormEvent) {
    event.preventDefault();
    const text = note.trim();
    if (text !== "") await onAnswer({ answer: refusing ? "reject" : "once", note: text });
  }

  return (
    <RequestCard
      label="Permission request"
      heading={
        <>
          <strong>The agent wants to {request.action}</strong>
          {from}
        </>
      }
      stack={stack}
      choices={request.choices}
      keyMode={keyMode}
      grantNote={request.grantNote}
      warnings={request.warnings}
      {...(onHide && { onHide })}
      onChoose={(index) => {
        const choice = request.choices[index];
        return choice === undefined ? undefined : onAnswer(choice);
      }}
      foot={
        hasNoteField ? (
          <form className="approvals-note" onSubmit={(event) => void sendNote(event)}>
            <input
              aria-label={refusing ? "What to do instead" : "Your answer"}
              placeholder={refusing ? "What to do instead" : "Your answer"}
              maxLength={2000}
              value={note}
              onChange={(event) => setNote(event.target.value)}
              autoFocus={refusing}
            />
            <button className="small" disabled={note.trim() === ""}>
              {refusing ? "Refuse and send" : "Send answer"}
            </button>
          </form>
        ) : (
          !isQuestion && (
            <button type="button" className="text-button approvals-instead" onClick={() => setRefusing(true)}>
              Refuse and say what to do instead
            </button>
          )
        )
      }
    >
      {request.title !== "" && (
        <p className="approvals-title">The agent calls this “{visibleText(shortLine(request.title))}”</p>
      )}
      <PermissionDetails details={request.details} />
    </RequestCard>
  );
}
