import { useEffect, useRef } from "react";
import type { SessionView } from "../../client/api";
import { useRoster } from "../sessions/roster";
import { newsBetween } from "../sessions/roster.logic";
import { go } from "../shell/route";
import { pageTitle, wordsOf } from "./notify.logic";
import { useNotifying } from "./permission";

/** Calls the owner while the page is out of sight, and says in title and icon how much waits. Draws nothing. */
export function Notifier({ waiting, place }: { waiting: number; place: string | undefined }) {
  const standing = useNotifying();
  const { rows } = useRoster();
  const before = useRef<readonly SessionView[] | null>(null);

  useEffect(() => {
    document.title = pageTitle(waiting, place);
  }, [waiting, place]);

  const any = waiting > 0;
  useEffect(() => {
    document.querySelector<HTMLLinkElement>("link[rel=icon]")?.setAttribute("href", any ? "/icon-waiting.svg" : "/icon.svg");
  }, [any]);

  useEffect(() => {
    const was = before.current;
    before.current = rows;
    if (was === null || rows === null || standing !== "on" || !document.hidden) return;
    for (const news of newsBetween(was, rows)) {
      const { title, body, tag } = wordsOf(news);
      const shown = new Notification(title, { body, tag, icon: "/icon.svg" });
      shown.onclick = () => {
        window.focus();
        go(`/sessions?id=${encodeURIComponent(news.session.id)}`);
        shown.close();
      };
    }
  }, [rows, standing]);
  return null;
}
