import { useMemo } from "react";
import DOCUMENTATION from "../../site/contents.json";
import type { HistoryPage, ManifestSettings } from "../client/api";
import { hasKind, useResource } from "../data/resource";
import { entryTitle } from "../features/history/history.logic";
import { sessionTitle } from "../features/session-list/sessionList.logic";
import { useEverySession } from "../features/session-list/useEverySession";
import { useWorkspaceFiles } from "../features/sessions/composer/useWorkspaceFiles";
import { shownSessions } from "../features/sessions/sidebar/shownSessions";
import { filePath, go, sessionPath } from "../ui/route";
import type { Command } from "./commandSearch.logic";

const ENTRIES = 200;
const HELP: readonly Command[] = DOCUMENTATION.flatMap((section) =>
  section.pages.map((page) => ({
    id: `help-${page.source.replaceAll(/[^\w-]/g, "-")}`,
    title: page.title,
    group: "Help",
    run: () => void window.open(`/docs/${page.source.replace(/\.md$/, ".html")}`, "_blank", "noopener"),
  })),
);
const LIVE = { topic: "timeline", durable: true, concerns: (event: unknown) => hasKind(event, "history.") };

/** What the palette finds by name beside commands: sessions, files, entries of the history, and settings. */
export function usePaletteItems(): readonly Command[] {
  const sessions = useEverySession();
  const { all: files } = useWorkspaceFiles(true);
  const history = useResource<HistoryPage>(`/v1/history?limit=${ENTRIES}`, LIVE).value;
  const settings = useResource<ManifestSettings>("/v1/settings").value;
  return useMemo(
    () => [
      ...shownSessions(sessions).map((session) => ({
        id: `session-${session.id}`,
        title: sessionTitle(session),
        group: "Session",
        run: () => go(sessionPath(session.id)),
      })),
      ...(history?.entries ?? []).map((entry) => ({
        id: `entry-${entry.id}`,
        title: entryTitle(entry),
        group: `Entry ${entry.id}`,
        run: () => go(`/history/diff?old=before&new=${entry.id}`),
      })),
      ...(settings?.sections ?? []).flatMap((section) =>
        section.settings.map((setting) => ({
          id: `setting-${setting.key.replaceAll(/[^\w-]/g, "-")}`,
          title: setting.key,
          group: "Setting",
          run: () => go(`/settings/manifest?find=${encodeURIComponent(setting.key)}`),
        })),
      ),
      ...HELP,
      ...files
        .filter((file) => !file.isFolder)
        .map((file, index) => ({
          id: `file-${index}`,
          title: file.path,
          group: "File",
          run: () => go(filePath(file.path)),
        })),
    ],
    [sessions, history, settings, files],
  );
}
