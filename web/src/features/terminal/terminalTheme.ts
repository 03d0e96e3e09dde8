import type { ITheme } from "@xterm/xterm";
import { isDark } from "../../ui/theme";

// The default colours of xterm are made for a dark background.
const LIGHT_COLOURS: ITheme = {
  black: "#24292f",
  red: "#a4342a",
  green: "#1f6c43",
  yellow: "#8a5a00",
  blue: "#0b5cad",
  magenta: "#7a3fb0",
  cyan: "#14717a",
  white: "#6e7781",
  brightBlack: "#57606a",
  brightRed: "#8f1d14",
  brightGreen: "#12512f",
  brightYellow: "#6b4500",
  brightBlue: "#084a8c",
  brightMagenta: "#5f2d91",
  brightCyan: "#0d575e",
  brightWhite: "#4b535b",
};

/** The colours of the page for a terminal. xterm needs them as plain colours and not as CSS variables. */
export function terminalTheme(): ITheme {
  const style = getComputedStyle(document.documentElement);
  const probe = document.createElement("span");
  document.body.append(probe);
  const colour = (name: string) => {
    probe.style.color = style.getPropertyValue(name);
    return getComputedStyle(probe).color;
  };
  const theme = {
    background: colour("--card"),
    foreground: colour("--ink"),
    cursor: colour("--leaf"),
    selectionBackground: colour("--line"),
    ...(isDark() ? {} : LIGHT_COLOURS),
  };
  probe.remove();
  return theme;
}

/** The colours of search results. xterm accepts only hexadecimal ones. */
export function matchColours() {
  const dark = isDark();
  return {
    matchBackground: dark ? "#5c4a17" : "#fbe7b0",
    activeMatchBackground: dark ? "#b58a1e" : "#f3c04a",
    matchOverviewRuler: "#b58a1e",
    activeMatchColorOverviewRuler: "#f3c04a",
  };
}
