import { useEffect, useMemo, useRef, useState } from "react";
import { countOf } from "../../ui/format";
import { PlainTextBoundary } from "../../ui/PlainTextBoundary";
import { visibleText } from "../../ui/visibleText";
import { DiffTable } from "../history/DiffTable";
import type { RequestDetail } from "./approvals.logic";
import { countLines, type DrawnDetail, drawnDetails, PAGE_LENGTH } from "./details.logic";

/** Everything that a permission request asks for. What is out of sight is counted, and a button shows it. */
export function PermissionDetails({ details }: { details: readonly RequestDetail[] }) {
  const box = useRef<HTMLDivElement>(null);
  const [hasMore, setHasMore] = useState(false);
  const [pages, setPages] = useState(1);
  const [whole, setWhole] = useState<ReadonlySet<number>>(new Set());
  const { drawn, hidden } = useMemo(() => drawnDetails(details, pages * PAGE_LENGTH, whole), [details, pages, whole]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: other details have another height
  useEffect(() => {
    const current = box.current;
    if (current === null) return;
    const measure = () => setHasMore(current.scrollHeight - current.scrollTop - current.clientHeight > 8);
    const observer = new ResizeObserver(measure);
    observer.observe(current);
    current.addEventListener("scroll", measure);
    measure();
    return () => {
      observer.disconnect();
      current.removeEventListener("scroll", measure);
    };
  }, [drawn]);
  return (
    <>
      <div ref={box} className="approvals-details" data-more={hasMore || undefined}>
        {drawn.map((one, index) => (
          <PlainTextBoundary key={index} text={`${one.detail.label}\n${one.text}`}>
            <Detail drawn={one} onShowWhole={() => setWhole((before) => new Set([...before, index]))} />
          </PlainTextBoundary>
        ))}
      </div>
      {hidden > 0 ? (
        <p className="approvals-warning">
          {countOf(hidden, "character")} of this request {hidden === 1 ? "is" : "are"} not on the screen.{" "}
          <button type="button" className="text-button" onClick={() => setPages(pages + 1)}>
            Show more
          </button>
        </p>
      ) : (
        hasMore && (
          <button
            type="button"
            className="text-button approvals-more"
            onClick={() => box.current?.scrollTo({ top: box.current.scrollHeight })}
          >
            Show all {countLines(details)} lines
          </button>
        )
      )}
    </>
  );
}

function Detail({ drawn: { detail, lines, text }, onShowWhole }: { drawn: DrawnDetail; onShowWhole: () => void }) {
  const label = visibleText(detail.label);
  const isDiff = detail.kind === "diff";
  return (
    <figure data-kind={detail.kind}>
      <figcaption>
        {isDiff ? <code className="path">{label}</code> : label}
        {detail.old === null && " (new file)"}
        {detail.runsByItself !== null && (
          <span className="chip" data-tone="alarm">
            runs by itself: {visibleText(detail.runsByItself)}
          </span>
        )}
      </figcaption>
      {!isDiff ? (
        <pre tabIndex={0} role="group" aria-label={label}>
          {visibleText(text)}
        </pre>
      ) : lines.length === 0 ? (
        <p className="quiet">No line changed.</p>
      ) : (
        <div className="approvals-change">
          <DiffTable lines={lines} more={0} label={`The change to ${label}`} isWhole onGap={onShowWhole} />
        </div>
      )}
      {detail.warnings.map((warning, index) => (
        <p key={index} className="approvals-warning">
          {visibleText(warning)}
        </p>
      ))}
    </figure>
  );
}
