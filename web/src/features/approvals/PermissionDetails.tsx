import { useEffect, useRef, useState } from "react";
import { visibleText } from "../../ui/visibleText";
import { countLines, type RequestDetail } from "./approvals.logic";

/** Everything that a permission request asks for. When part of it is out of sight, a button shows the rest. */
export function PermissionDetails({ details }: { details: readonly RequestDetail[] }) {
  const box = useRef<HTMLDivElement>(null);
  const [hasMore, setHasMore] = useState(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: other details have another height
  useEffect(() => {
    const shown = box.current;
    if (shown === null) return;
    const measure = () => setHasMore(shown.scrollHeight - shown.scrollTop - shown.clientHeight > 8);
    const observer = new ResizeObserver(measure);
    observer.observe(shown);
    shown.addEventListener("scroll", measure);
    measure();
    return () => {
      observer.disconnect();
      shown.removeEventListener("scroll", measure);
    };
  }, [details]);
  return (
    <>
      <div ref={box} className="approvals-details" data-more={hasMore || undefined}>
        {details.map((detail, index) => (
          <Detail key={index} detail={detail} />
        ))}
      </div>
      {hasMore && (
        <button
          type="button"
          className="text-button approvals-more"
          onClick={() => box.current?.scrollTo({ top: box.current.scrollHeight })}
        >
          Show all {countLines(details)} lines
        </button>
      )}
    </>
  );
}

const SIGNS = { added: "+", removed: "−", same: " ", gap: "⋯" } as const;

function Detail({ detail }: { detail: RequestDetail }) {
  if (detail.kind !== "diff")
    return (
      <figure data-kind={detail.kind}>
        <figcaption>{detail.label}</figcaption>
        <pre tabIndex={0} role="group" aria-label={detail.label}>
          {visibleText(detail.text)}
        </pre>
      </figure>
    );
  return (
    <figure data-kind="diff">
      <figcaption>
        <code className="path">{visibleText(detail.label)}</code>
      </figcaption>
      <pre tabIndex={0} role="group" aria-label={`The change to ${visibleText(detail.label)}`}>
        {detail.lines.map((line, index) => (
          <span key={index} className="approvals-line" data-kind={line.kind}>
            <span aria-hidden="true">{SIGNS[line.kind]}</span>
            {line.kind !== "same" && line.kind !== "gap" && <span className="visually-hidden">{line.kind}: </span>}
            {visibleText(line.text)}
            {"\n"}
          </span>
        ))}
      </pre>
    </figure>
  );
}
