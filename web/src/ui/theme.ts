export type Theme = "system" | "light" | "dark";

const KEY = "freehold.theme";
/** The event that the window gets when the owner chooses another theme. */
export const THEME_CHANGED = "freehold:theme";
/** The colour of the window frame of an installed page. */
const PAPER = { light: "#faf8f4", dark: "#141816" } as const;
export const THEMES: readonly Theme[] = ["system", "light", "dark"];

export function readTheme(store: Pick<Storage, "getItem"> = localStorage): Theme {
  const stored = store.getItem(KEY);
  return stored === "light" || stored === "dark" ? stored : "system";
}

export function isDark(): boolean {
  const chosen = document.documentElement.dataset["theme"];
  return chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
}

export function setTheme(theme: Theme): void {
  if (theme === "system") {
    localStorage.removeItem(KEY);
    delete document.documentElement.dataset["theme"];
  } else {
    localStorage.setItem(KEY, theme);
    document.documentElement.dataset["theme"] = theme;
  }
  for (const meta of document.querySelectorAll<HTMLMetaElement>("meta[name='theme-color']")) {
    const scheme = theme === "system" ? (meta.media.includes("dark") ? "dark" : "light") : theme;
    meta.content = PAPER[scheme];
  }
  window.dispatchEvent(new Event(THEME_CHANGED));
}
