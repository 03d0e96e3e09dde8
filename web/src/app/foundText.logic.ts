import type { SessionInfo, TextHit } from "../client/api";
import { highlightMatch } from "../features/files/search.logic";
import { sessionTitle } from "../features/session-list/sessionList.logic";
import { filePath, go, sessionPath } from "../ui/route";
import { visibleText } from "../ui/visibleText";
import type { Command } from "./commandSearch.logic";

/** So many characters are searched for; fewer are in almost everything. */
export const MIN_SEARCHED = 3;

/** Rows of the palette for what a search found: each opens where the words are. */
export function foundText(wanted: string, sessions: readonly SessionInfo[], lines: readonly TextHit[]): Command[] {
  return [
    ...sessions.map((session) => ({
      id: `said-${session.id}`,
      title: sessionTitle(session),
      group: "In the conversation",
      run: () => go(`${sessionPath(session.id)}&find=${encodeURIComponent(wanted)}`),
    })),
    ...lines.map((hit, index) => ({
      id: `line-${index}`,
      title: highlightMatch(hit, wanted, false)
        .map((piece) => piece.text)
        .join("")
        .trim(),
      group: visibleText(`${hit.path}:${hit.line}`),
      run: () => go(filePath(hit.path, hit.line)),
    })),
  ];
}
