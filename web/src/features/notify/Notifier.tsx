import { useEffect, useRef } from "react";
import type { SessionView } from "../../client/api";
import { useRoster } from "../sessions/roster";
import { newsBetween } from "../sessions/roster.logic";
import { go } from "../shell/route";
import { pageTitle, wordsOf, type Words } from "./notify.logic";
import { useNotifying } from "./permission";

/** Calls the owner while the page is out of sight, and says in title and icon how much waits. Draws nothing. */
export function Notifier({ asks, questions, place }: { asks: number; questions: number; place: string | undefined }) {
  const waiting = asks + questions;
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
    for (const news of newsBetween(was, rows)) call(wordsOf(news), `/sessions?id=${encodeURIComponent(news.session.id)}`);
  }, [rows, standing]);

  const asked = useRef(questions);
  useEffect(() => {
    const more = questions > asked.current;
    asked.current = questions;
    if (more && standing === "on" && document.hidden) call({ title: "The network waits for you", body: "Something wants to leave the computer", tag: "network" }, "/network");
  }, [questions, standing]);
  return null;
}

function call({ title, body, tag }: Words, to: string) {
  const shown = new Notification(title, { body, tag, icon: "/icon.svg" });
  shown.onclick = () => {
    window.focus();
    go(to);
    shown.close();
  };
}
