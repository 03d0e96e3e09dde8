import type { ReactNode } from "react";
import { ErrorBoundary } from "./ErrorBoundary";
import { PlainText } from "./PlainText";

interface PlainTextBoundaryProps {
  /** The text that the part draws. */
  text: string;
  children: ReactNode;
}

/** Shows the text of a part that cannot be drawn. Nothing beside it is harmed. */
export function PlainTextBoundary({ text, children }: PlainTextBoundaryProps) {
  return (
    <ErrorBoundary name="This text" content={text} fallback={<PlainText text={text} note={NOT_DRAWN} />}>
      {children}
    </ErrorBoundary>
  );
}

const NOT_DRAWN = "This could not be drawn. It is shown as plain text.";
