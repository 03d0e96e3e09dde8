import { useEffect, useRef } from "react";
import type { SessionInfo } from "../../client/api";
import { go, sessionPath } from "../../ui/route";
import { useSessionList } from "../session-list/SessionListProvider";
import { sessionNews } from "../session-list/sessionList.logic";
import { useNotificationState } from "./browserPermission";
import { type Message, messageOf, NETWORK_MESSAGE, tabTitle } from "./notifications.logic";

interface NotificationsProps {
  permissionRequests: number;
  networkRequests: number;
  page: string | undefined;
}

/** Notifies the owner while the page is hidden, and counts open requests in the tab's title and icon. Draws nothing. */
export function Notifications({ permissionRequests, networkRequests, page }: NotificationsProps) {
  const waiting = permissionRequests + networkRequests;
  const enabled = useNotificationState() === "on";
  const { value: sessions } = useSessionList();

  useEffect(() => {
    document.title = tabTitle(waiting, page);
  }, [waiting, page]);

  const hasRequests = waiting > 0;
  useEffect(() => {
    const icon = document.querySelector("link[rel=icon]");
    const address = hasRequests ? "/icon-waiting.svg" : "/icon.svg";
    // The browser asks for it again, also when it is set to what it was.
    if (icon?.getAttribute("href") !== address) icon?.setAttribute("href", address);
  }, [hasRequests]);

  const previousSessions = useRef<readonly SessionInfo[] | null>(null);
  useEffect(() => {
    const previous = previousSessions.current;
    previousSessions.current = sessions;
    if (previous === null || sessions === null || !enabled || !document.hidden) return;
    for (const news of sessionNews(previous, sessions)) notify(messageOf(news), sessionPath(news.session.id));
  }, [sessions, enabled]);

  const previousRequests = useRef(networkRequests);
  useEffect(() => {
    const isMore = networkRequests > previousRequests.current;
    previousRequests.current = networkRequests;
    if (isMore && enabled && document.hidden) notify(NETWORK_MESSAGE, "/network");
  }, [networkRequests, enabled]);
  return null;
}

function notify({ title, body, tag }: Message, page: string) {
  const notification = new Notification(title, { body, tag, icon: "/icon.svg" });
  notification.onclick = () => {
    window.focus();
    go(page);
    notification.close();
  };
}
