import type { SessionInfo, TextHit } from "../client/api";
import { sessionTitle } from "../features/session-list/sessionList.logic";
import { filePath, go, sessionPath } from "../ui/route";
import type { Command } from "./commandSearch.logic";

/** So many characters are searched for; fewer are in almost everything. */
export const MIN_SEARCHED = 3;
const MAX_LINE = 120;

/** Rows of the palette for what a search found: each opens where the words are. */
export function foundText(
  wanted: string,
  sessions: readonly SessionInfo[],
  lines: readonly Pick<TextHit, "path" | "line" | "text">[],
): Command[] {
  return [
    ...sessions.map((session) => ({
      id: `said-${session.id}`,
      title: sessionTitle(session),
      group: "In the conversation",
      run: () => go(`${sessionPath(session.id)}&find=${encodeURIComponent(wanted)}`),
    })),
    ...lines.map((hit, index) => ({
      id: `line-${index}`,
      title: hit.text.trim().slice(0, MAX_LINE),
      group: `${hit.path}:${hit.line}`,
      run: () => go(filePath(hit.path, hit.line)),
    })),
  ];
}
