import { useEffect, useMemo, useRef } from "react";
import { useKillSwitch } from "../features/kill-switch/KillSwitchProvider";
import { SECTIONS } from "../features/settings/sections";
import { signOut } from "../features/sign-in/signOut";
import { go } from "../ui/route";
import { useToasts } from "../ui/Toasts";
import { setTheme, THEMES } from "../ui/theme";
import type { Command } from "./commandSearch.logic";
import { PAGES } from "./pages";

interface CommandHandlers {
  onSignedOut: () => void;
  onShowShortcuts: () => void;
}

/** Every command of the palette. */
export function useCommands(handlers: CommandHandlers): Command[] {
  const toasts = useToasts();
  const { stopped, resume } = useKillSwitch();
  const latest = useRef(handlers);
  useEffect(() => {
    latest.current = handlers;
  });
  return useMemo<Command[]>(() => {
    return [
      ...PAGES.map((page) => ({
        id: page.path.slice(1),
        title: page.title,
        group: "Page",
        run: () => go(page.path),
      })),
      { id: "new-session", title: "New session", group: "Sessions", run: () => go("/sessions?new=1") },
      { id: "redo", title: "Redo the last undo…", group: "History", run: () => go("/history?redo=last") },
      { id: "undo", title: "Undo the last change…", group: "History", run: () => go("/history?undo=last") },
      { id: "stop", title: "Stop all agents…", group: "Kill switch", run: () => go("/settings?stop=ask") },
      ...SECTIONS.map((section) => ({
        id: section.path.slice(1).replace("/", "-"),
        title: section.title,
        group: "Settings",
        run: () => go(section.path),
      })),
      { id: "compare", title: "Compare two states of the files", group: "History", run: () => go("/history/diff") },
      { id: "new-terminal", title: "Open a new terminal", group: "Terminal", run: () => go("/terminal?new=1") },
      ...THEMES.map((theme) => ({
        id: `theme-${theme}`,
        title: `Use the ${theme} theme`,
        group: "Appearance",
        run: () => setTheme(theme),
      })),
      ...(stopped
        ? [{ id: "resume", title: "Let agents work again", group: "Kill switch", run: () => void resume() }]
        : []),
      { id: "shortcuts", title: "Show keyboard shortcuts", group: "Help", run: () => latest.current.onShowShortcuts() },
      {
        id: "sign-out",
        title: "Sign out",
        group: "Account",
        run: () => void signOut().then(() => latest.current.onSignedOut(), toasts.failed),
      },
    ];
  }, [toasts, stopped, resume]);
}
