import { memo, useEffect, useRef, useState } from "react";
import { Icon } from "../../ui/Icon";
import { unhidden } from "../../ui/unhidden";
import { colour, isKnown, type Span } from "./languages";

/** Some code as it is: what hides is spelled out, and what is copied is what is shown. Coloured once it stands still. */
export const Code = memo(function Code({ text, language, live }: { text: string; language: string; live: boolean }) {
  const shown = unhidden(text);
  const [spans, setSpans] = useState<{ of: string; spans: Span[] } | null>(null);
  useEffect(() => {
    if (live || !isKnown(language)) return;
    let current = true;
    // Without its colours code is still code: a grammar that cannot be had is no failure to tell of.
    colour(shown, language).then((found) => current && found && setSpans({ of: shown, spans: found }), () => undefined);
    return () => {
      current = false;
    };
  }, [shown, language, live]);
  return (
    <figure className="code">
      <figcaption>
        <span>{language || "text"}</span>
        <Copy text={shown} />
      </figcaption>
      <pre tabIndex={0} aria-label={language ? `Code, ${language}` : "Code"}>
        <code>{spans?.of === shown ? spans.spans.map((span, index) => (span.look ? <span key={index} className={span.look}>{span.text}</span> : span.text)) : shown}</code>
      </pre>
    </figure>
  );
});

export function Copy({ text, label = "Copy" }: { text: string; label?: string }) {
  const [said, setSaid] = useState("");
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  async function copy() {
    try {
      await navigator.clipboard.writeText(text);
      setSaid("Copied");
    } catch {
      setSaid("Not allowed here");
    }
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setSaid(""), 2_000);
  }
  return (
    <button className="copy" onClick={() => void copy()} aria-label={said || label}>
      <Icon name={said === "Copied" ? "check" : "copy"} size={14} />
      <span aria-hidden="true">{said || label}</span>
    </button>
  );
}
