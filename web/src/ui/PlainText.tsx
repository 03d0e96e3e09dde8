import { useState } from "react";
import { CopyButton } from "./CopyButton";
import { countOf } from "./format";
import { cutText } from "./plainText.logic";
import { visibleText } from "./visibleText";

interface PlainTextProps {
  text: string;
  /** Why it is not formatted, as a sentence. */
  note?: string;
  /** What it is, for a screen reader. */
  label?: string;
}

/** A text as it is, with hidden characters made visible. A long one is drawn in parts, each when it is asked for. */
export function PlainText({ text, note, label = "Plain text" }: PlainTextProps) {
  const [parts, setParts] = useState(1);
  const { shown, hidden } = cutText(text, parts);
  return (
    <div className="plain-text" dir="auto">
      {note && (
        <p className="plain-text-note">
          <span>{note}</span> <CopyButton text={text} />
        </p>
      )}
      <pre tabIndex={0} role="group" aria-label={label}>
        {shown.map((part, index) => (
          <span key={index}>{visibleText(part)}</span>
        ))}
      </pre>
      {hidden > 0 && (
        <p className="plain-text-note">
          <span>{countOf(hidden, "more character")}</span>
          <button type="button" className="text-button" onClick={() => setParts(parts + 1)}>
            Show more
          </button>
        </p>
      )}
    </div>
  );
}
