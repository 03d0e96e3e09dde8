import type { SessionInfo } from "../../../client/api";
import { isUnused } from "../../session-list/sessionList.logic";
import { readDraft } from "../composer/draft";

/** The sessions that are offered. One that was started and left without a word has no row, unless it is the open one. */
export const shownSessions = (sessions: readonly SessionInfo[], open: string | null = null): SessionInfo[] =>
  sessions.filter((one) => one.id === open || !isUnused(one) || readDraft(one.id).text !== "");
