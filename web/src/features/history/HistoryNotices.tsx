import type { HistoryNotice } from "../../client/api";
import { hasKind, useResource } from "../../data/resource";
import { formatAge, formatDateTime, secondsOf } from "../../ui/format";
import { shortLine } from "../../ui/plainText.logic";
import { useNow } from "../../ui/useNow";
import { visibleText } from "../../ui/visibleText";

/** What history has to tell: what it could not store, moved aside, or is about to drop. */
export function HistoryNotices() {
  const { value } = useResource<HistoryNotice[]>("/v1/history/notices", {
    topic: "timeline",
    durable: true,
    concerns: (event) => hasKind(event, "history.notice_given"),
  });
  const now = useNow();
  return value?.map((notice) => (
    <section key={notice.code} className="notice" aria-label="From history">
      <p>
        <strong>{visibleText(shortLine(notice.message))}</strong>{" "}
        <time className="quiet" title={formatDateTime(secondsOf(notice.at))}>
          {formatAge(secondsOf(notice.at), now)}
        </time>
      </p>
      {notice.hint && <p>{visibleText(shortLine(notice.hint))}</p>}
    </section>
  ));
}
