import { FitAddon } from "@xterm/addon-fit";
import { SearchAddon } from "@xterm/addon-search";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { useEffect, useImperativeHandle, useRef, useState, type Ref } from "react";
import { FindBar } from "./FindBar";
import { bytesOf, comesBack, readTerminalKey, safeLink, withControl, type SoftKey } from "./terminal.logic";
import { isDark } from "../shell/theme";
import { withConstructedStyles, withStyleObjects } from "./styles";

export interface ScreenHandle {
  press: (key: SoftKey) => void;
  paste: () => void;
  find: () => void;
  focus: () => void;
}

interface ScreenProps {
  id: string;
  shown: boolean;
  /** Ctrl is held on the row of keys: the next one typed is taken with it. */
  control: boolean;
  onControlUsed: () => void;
  onTitle: (title: string) => void;
  onEnded: () => void;
  /** A link whose words need not be where it leads: the owner is asked. */
  onLink: (address: string) => void;
  ref: Ref<ScreenHandle>;
}

const RETRY = 1_000;

// xterm's own colours are made for a dark ground.
const ON_LIGHT = {
  black: "#24292f", red: "#a4342a", green: "#1f6c43", yellow: "#8a5a00", blue: "#0b5cad", magenta: "#7a3fb0", cyan: "#14717a", white: "#6e7781",
  brightBlack: "#57606a", brightRed: "#8f1d14", brightGreen: "#12512f", brightYellow: "#6b4500", brightBlue: "#084a8c", brightMagenta: "#5f2d91", brightCyan: "#0d575e", brightWhite: "#4b535b",
};

function colours() {
  const style = getComputedStyle(document.documentElement);
  const probe = document.createElement("span");
  document.body.append(probe);
  const of = (name: string) => {
    probe.style.color = style.getPropertyValue(name);
    return getComputedStyle(probe).color;
  };
  const theme = { background: of("--card"), foreground: of("--ink"), cursor: of("--leaf"), selectionBackground: of("--line"), ...(isDark() ? {} : ON_LIGHT) };
  probe.remove();
  return theme;
}

/** The colours of what a search has found; only hexadecimal ones are taken. */
function marks() {
  const dark = isDark();
  return {
    matchBackground: dark ? "#5c4a17" : "#fbe7b0",
    activeMatchBackground: dark ? "#b58a1e" : "#f3c04a",
    matchOverviewRuler: "#b58a1e",
    activeMatchColorOverviewRuler: "#f3c04a",
  };
}

async function copy(text: string) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without https there is no such interface; the terminal answers the browser's own copying with its selection.
    document.execCommand("copy");
  }
}

function openLink(text: string) {
  const address = safeLink(text);
  if (address !== null) window.open(address, "_blank", "noopener,noreferrer");
}

/** One terminal. What is written inside can draw here, and nothing more: no clipboard, no links but to the web. */
export default function Screen({ id, shown, control, onControlUsed, onTitle, onEnded, onLink, ref }: ScreenProps) {
  const place = useRef<HTMLDivElement>(null);
  const held = useRef<{ terminal: Terminal; search: SearchAddon; fit: () => void; send: (text: string) => void } | null>(null);
  const latest = useRef({ control, onControlUsed, onTitle, onEnded, onLink });
  const [finding, setFinding] = useState(false);
  const [matches, setMatches] = useState<{ at: number; count: number } | null>(null);
  useEffect(() => {
    latest.current = { control, onControlUsed, onTitle, onEnded, onLink };
  });

  useEffect(() => {
    if (place.current === null) return;
    const parent = place.current;
    const terminal = new Terminal({
      fontFamily: 'ui-monospace, "SF Mono", Menlo, "DejaVu Sans Mono", monospace',
      fontSize: 14,
      // At 1 a row is cut off right where an underscore is drawn.
      lineHeight: 1.2,
      scrollback: 10_000,
      cursorBlink: true,
      theme: colours(),
      // Marks of a search are drawn by an interface that xterm still calls proposed.
      allowProposedApi: true,
      linkHandler: {
        activate: (_, text) => {
          const address = safeLink(text);
          if (address !== null) latest.current.onLink(address);
        },
        allowNonHttpProtocols: false,
      },
    });
    const fitting = new FitAddon();
    terminal.loadAddon(fitting);
    const search = new SearchAddon();
    terminal.loadAddon(search);
    search.onDidChangeResults(({ resultIndex, resultCount }) => setMatches({ at: resultIndex + 1, count: resultCount }));
    terminal.attachCustomKeyEventHandler((event) => {
      const act = readTerminalKey(event, terminal.buffer.active.type === "alternate");
      if (act === null) return true;
      if (act === "find") {
        event.preventDefault();
        setFinding(true);
      }
      if (act === "copy") {
        event.preventDefault();
        if (terminal.hasSelection()) void copy(terminal.getSelection());
      }
      // Pasting is the browser's: it asks no permission and gives the text to the terminal.
      return false;
    });
    terminal.loadAddon(new WebLinksAddon((_, text) => openLink(text)));
    // A program inside does not get to write what the owner pastes next.
    terminal.parser.registerOscHandler(52, () => true);
    const removeStyles = withConstructedStyles(() => terminal.open(parent));
    withStyleObjects(terminal);
    terminal.onTitleChange((title) => latest.current.onTitle(title));

    let socket: WebSocket | null = null;
    let retry = 0;
    let over = false;
    const encoder = new TextEncoder();
    const tellSize = () => {
      if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ type: "resize", rows: terminal.rows, columns: terminal.cols }));
    };
    const fit = () => {
      if (parent.offsetParent === null) return;
      const before = `${terminal.rows} ${terminal.cols}`;
      fitting.fit();
      if (before !== `${terminal.rows} ${terminal.cols}`) tellSize();
    };
    function connect() {
      const scheme = location.protocol === "https:" ? "wss" : "ws";
      const made = new WebSocket(`${scheme}://${location.host}/v1/terminals/${encodeURIComponent(id)}/socket`);
      made.binaryType = "arraybuffer";
      socket = made;
      made.onopen = () => {
        // What it shows is sent anew to whoever attaches.
        terminal.reset();
        fit();
        tellSize();
      };
      made.onmessage = (event: MessageEvent) => {
        if (event.data instanceof ArrayBuffer) terminal.write(new Uint8Array(event.data));
      };
      made.onclose = (event) => {
        if (over) return;
        if (comesBack(event.code)) retry = window.setTimeout(connect, RETRY);
        else {
          terminal.write("\r\n\x1b[2m— ended —\x1b[0m\r\n");
          latest.current.onEnded();
        }
      };
    }
    const send = (text: string) => {
      if (socket?.readyState === WebSocket.OPEN) socket.send(encoder.encode(text));
    };
    terminal.onData((text) => {
      if (!latest.current.control) return send(text);
      latest.current.onControlUsed();
      send(withControl(text));
    });
    terminal.onBinary((text) => {
      if (socket?.readyState === WebSocket.OPEN) socket.send(Uint8Array.from(text, (char) => char.charCodeAt(0)));
    });
    const watcher = new ResizeObserver(fit);
    watcher.observe(parent);
    const recolour = () => {
      terminal.options.theme = colours();
    };
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", recolour);
    window.addEventListener("freehold:theme", recolour);
    held.current = { terminal, search, fit, send };
    fit();
    connect();
    return () => {
      over = true;
      clearTimeout(retry);
      watcher.disconnect();
      scheme.removeEventListener("change", recolour);
      window.removeEventListener("freehold:theme", recolour);
      socket?.close();
      terminal.dispose();
      removeStyles();
      held.current = null;
    };
  }, [id]);

  useEffect(() => {
    if (!shown) return;
    held.current?.fit();
    held.current?.terminal.focus();
  }, [shown]);

  useImperativeHandle(
    ref,
    () => ({
      press(key) {
        const now = held.current;
        now?.send(bytesOf(key, now.terminal.modes.applicationCursorKeysMode));
        now?.terminal.focus();
      },
      paste() {
        const now = held.current;
        void navigator.clipboard
          ?.readText()
          .then((text) => now?.terminal.paste(text))
          .catch(() => undefined);
        now?.terminal.focus();
      },
      find: () => setFinding(true),
      focus: () => held.current?.terminal.focus(),
    }),
    [],
  );

  return (
    <div className="screen" data-keys="terminal" data-terminal={id} hidden={!shown}>
      <div ref={place} className="screen-lines" />
      {finding && (
        <FindBar
          matches={matches}
          onFind={(words, back) => {
            const search = held.current?.search;
            if (words === "") {
              search?.clearDecorations();
              setMatches(null);
            } else if (back) search?.findPrevious(words, { decorations: marks() });
            else search?.findNext(words, { decorations: marks(), incremental: false });
          }}
          onClose={() => {
            held.current?.search.clearDecorations();
            setFinding(false);
            setMatches(null);
            held.current?.terminal.focus();
          }}
        />
      )}
    </div>
  );
}
