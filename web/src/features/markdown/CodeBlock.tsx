import { memo, useEffect, useState } from "react";
import { CopyButton } from "../../ui/CopyButton";
import { countOf } from "../../ui/format";
import { cutText } from "../../ui/plainText.logic";
import { visibleText } from "../../ui/visibleText";
import { highlight, isKnownLanguage, type Span } from "./highlight";
import "./code-block.css";

/** A block of code with hidden characters made visible. It is highlighted when it is complete. */
export const CodeBlock = memo(function CodeBlock({
  text,
  language,
  live,
}: {
  text: string;
  language: string;
  live: boolean;
}) {
  const [parts, setParts] = useState(1);
  const cut = cutText(text, parts);
  const shown = visibleText(cut.shown.join(""));
  const [spans, setSpans] = useState<{ of: string; spans: Span[] } | null>(null);
  useEffect(() => {
    if (live || !isKnownLanguage(language)) return;
    let current = true;
    // Without a grammar the code is shown without highlighting.
    highlight(shown, language).then(
      (found) => current && found && setSpans({ of: shown, spans: found }),
      () => undefined,
    );
    return () => {
      current = false;
    };
  }, [shown, language, live]);
  return (
    <figure className="code-block">
      <figcaption>
        <span>{language || "text"}</span>
        <CopyButton text={text} />
      </figcaption>
      <pre tabIndex={0} role="group" aria-label={language ? `Code, ${language}` : "Code"}>
        <code>
          {spans?.of === shown
            ? spans.spans.map((span, index) =>
                span.className ? (
                  <span key={index} className={span.className}>
                    {span.text}
                  </span>
                ) : (
                  span.text
                ),
              )
            : shown}
        </code>
      </pre>
      {cut.hidden > 0 && (
        <p className="plain-text-note">
          <span>{countOf(cut.hidden, "more character")}</span>
          <button type="button" className="text-button" onClick={() => setParts(parts + 1)}>
            Show more
          </button>
        </p>
      )}
    </figure>
  );
});
