import { useContext, useEffect, useMemo, useRef, useState } from "react";
import type { HistoryComparison, HistoryPage, TimelineEvents } from "../../client/api";
import { request } from "../../client/http";
import { useTopic } from "../../data/connection";
import { hasKind, useResource } from "../../data/resource";
import { Icon } from "../../ui/Icon";
import { Notice } from "../../ui/Notice";
import { PaneSessionContext, useIsInPane } from "../../ui/pane";
import { useGo, useRoute } from "../../ui/route";
import { useNarrowScreen } from "../../ui/useNarrowScreen";
import { TURN_ENDED, turnStarts } from "../history/timeline.logic";
import { ComparisonView } from "./ComparisonView";
import {
  type DiffPoints,
  diffPath,
  isSameComparison,
  isUnlisted,
  pointChoices,
  readPoints,
  withMoreFiles,
} from "./diff.logic";
import "./diff.css";

const VIEW_KEY = "freehold.diff";
const SPACE_KEY = "freehold.diff.space";
/** Files that are listed at once. More follow when the owner asks for them. */
const MAX_FILES = 1000;
const MAX_ENTRIES = 300;

/** Compares any two states of the files. */
export default function DiffPage() {
  const { query } = useRoute();
  const go = useGo();
  const isInPane = useIsInPane();
  const points = readPoints(query);
  const { value, problem, reload, loadMore } = useComparison(points, query.get("file"));
  const entries = useResource<HistoryPage>(`/v1/history?limit=${MAX_ENTRIES}`, {
    topic: "timeline",
    durable: true,
    concerns: (event) => hasKind(event, "history."),
  });
  const [split, setSplit] = useState(() => localStorage.getItem(VIEW_KEY) !== "unified");
  const [ignoresSpace, setIgnoresSpace] = useState(() => localStorage.getItem(SPACE_KEY) === "ignored");
  const isNarrow = useNarrowScreen();

  const pick = (next: Partial<DiffPoints>) => go(diffPath({ ...points, ...next }));
  const showSplit = (isSplit: boolean) => {
    localStorage.setItem(VIEW_KEY, isSplit ? "split" : "unified");
    setSplit(isSplit);
  };
  const ignoreSpace = (isIgnored: boolean) => {
    localStorage.setItem(SPACE_KEY, isIgnored ? "ignored" : "shown");
    setIgnoresSpace(isIgnored);
  };
  const choices = (side: "old" | "new") => pointChoices(entries.value?.entries ?? [], side, points[side]);
  return (
    <div className="diff">
      <header className="diff-head">
        {!isInPane && (
          <button
            type="button"
            className="plain-button"
            onClick={() => go("/history")}
            aria-label="Back to the history"
          >
            <Icon name="back" />
          </button>
        )}
        <h1>Changes</h1>
        <div className="diff-points">
          <PointPicker label="From" value={points.old} groups={choices("old")} onPick={(old) => pick({ old })} />
          <span aria-hidden="true" className="quiet">
            →
          </span>
          <PointPicker label="To" value={points.new} groups={choices("new")} onPick={(to) => pick({ new: to })} />
        </div>
        <button
          type="button"
          className="small"
          aria-pressed={ignoresSpace}
          title="Show lines that differ in white space only as the same"
          onClick={() => ignoreSpace(!ignoresSpace)}
        >
          Ignore white space
        </button>
        {!isNarrow && (
          <div className="tabs" role="group" aria-label="Layout">
            <button type="button" aria-pressed={split} onClick={() => showSplit(true)}>
              Side by side
            </button>
            <button type="button" aria-pressed={!split} onClick={() => showSplit(false)}>
              Unified
            </button>
          </div>
        )}
      </header>
      {points.new === "now" && <CompareAgain compare={reload} />}
      {problem && (
        <div className="diff-note">
          <Notice problem={problem} action={{ label: "Try again", run: reload }} />
        </div>
      )}
      {value === null && problem === null && <p className="loading quiet">Comparing…</p>}
      {value !== null && (
        <ComparisonView
          key={`${value.old?.id ?? 0}..${value.new.id}`}
          comparison={value}
          points={points}
          split={split && !isNarrow}
          ignoresSpace={ignoresSpace}
          loadMore={loadMore}
        />
      )}
    </div>
  );
}

/** The comparison of two states. "before" a turn with several entries means before the first of them. */
function useComparison(points: DiffPoints, file: string | null) {
  const turns = useResource<TimelineEvents>(
    `/v1/timeline?before=${Number.MAX_SAFE_INTEGER}&kind=${TURN_ENDED}&limit=1000`,
  );
  const needsTurns = points.old === "before" && points.new !== "now";
  const isKnown = !needsTurns || turns.value !== null || turns.problem !== null;
  const start = turnStarts(turns.value?.events ?? []).get(Number(points.new));
  const old = points.old === "before" ? (start ?? "before") : points.old;
  const { value, problem, reload, update } = useResource<HistoryComparison>(
    isKnown ? `/v1/history/compare?old=${old}&new=${points.new}&limit=${MAX_FILES}` : null,
    {
      merge: (held, fetched) => (held !== null && isSameComparison(held, fetched) ? held : fetched),
      // Two states that are named by their numbers never change.
      ...(points.new === "now" ? {} : { keep: (comparison) => comparison }),
    },
  );
  const loadMore = async () => {
    if (value === null) return;
    // The two entries, as "now" may be another state by now.
    const query = `old=${value.old?.id ?? 0}&new=${value.new.id}&limit=${MAX_FILES}&skip=${value.files.length}`;
    const page = await request<HistoryComparison>(`/v1/history/compare?${query}`);
    update((held) => withMoreFiles(held, page));
  };
  return { value: useUnlistedFile(value, file), problem, reload, loadMore };
}

/**
 * Compares with "now" again when another session is opened beside the page, if files have changed. While one session is
 * open, nothing changes under the eyes of its reader. Draws nothing.
 */
function CompareAgain({ compare }: { compare: () => void }) {
  const session = useContext(PaneSessionContext);
  const hasChanged = useRef(false);
  const change = () => {
    hasChanged.current = true;
  };
  useTopic("files", { event: change, resync: change });
  // biome-ignore lint/correctness/useExhaustiveDependencies: it is asked for each session
  useEffect(() => {
    if (hasChanged.current) compare();
    hasChanged.current = false;
  }, [session, compare]);
  return null;
}

/** The comparison, also with the file that the address names when that is on a later page of the files. */
function useUnlistedFile(listed: HistoryComparison | null, file: string | null): HistoryComparison | null {
  const isMissing = listed !== null && file !== null && isUnlisted(listed, file);
  const states = `old=${listed?.old?.id ?? 0}&new=${listed?.new.id}`;
  const found = useResource<HistoryComparison>(
    isMissing ? `/v1/history/compare?${states}&limit=1&path=${encodeURIComponent(file)}` : null,
  );
  return useMemo(
    () => (listed === null || found.value === null ? listed : withMoreFiles(listed, found.value)),
    [listed, found.value],
  );
}

interface PointPickerProps {
  label: string;
  value: string;
  groups: ReturnType<typeof pointChoices>;
  onPick: (value: string) => void;
}

function PointPicker({ label, value, groups, onPick }: PointPickerProps) {
  return (
    <label className="diff-point">
      <span className="quiet">{label}</span>
      <select aria-label={label} value={value} onChange={(event) => onPick(event.target.value)}>
        {groups.map(({ group, choices }) => {
          const options = choices.map((one) => (
            <option key={one.value} value={one.value}>
              {one.label}
            </option>
          ));
          return group === "" ? (
            options
          ) : (
            <optgroup key={group} label={group}>
              {options}
            </optgroup>
          );
        })}
      </select>
    </label>
  );
}
