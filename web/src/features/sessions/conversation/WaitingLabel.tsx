import { Fragment } from "react";
import { readWaiting } from "./waiting.logic";

/** The place of a session in the queue. A screen reader hears it when it changes. */
export function WaitingLabel({ message }: { message: string }) {
  const { place, reason } = readWaiting(message);
  return (
    <p className="conversation-working" role="status" data-waiting>
      <strong>{place}</strong>
      <span>
        {reason.map(({ text, isSetting }) => (
          <Fragment key={text}>{isSetting ? <code>{text}</code> : text}</Fragment>
        ))}
      </span>
    </p>
  );
}
