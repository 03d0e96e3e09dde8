import { FitAddon } from "@xterm/addon-fit";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { useEffect, useRef } from "react";
import { comesBack, safeLink } from "./terminal.logic";
import { withConstructedStyles } from "./styles";

interface ScreenProps {
  id: string;
  shown: boolean;
  onTitle: (title: string) => void;
  onEnded: () => void;
}

const RETRY = 1_000;

function colours() {
  const style = getComputedStyle(document.documentElement);
  const probe = document.createElement("span");
  document.body.append(probe);
  const of = (name: string) => {
    probe.style.color = style.getPropertyValue(name);
    return getComputedStyle(probe).color;
  };
  const theme = { background: of("--card"), foreground: of("--ink"), cursor: of("--leaf"), selectionBackground: of("--line") };
  probe.remove();
  return theme;
}

function openLink(text: string) {
  const address = safeLink(text);
  if (address !== null) window.open(address, "_blank", "noopener,noreferrer");
}

/** One terminal. What is written inside can draw here, and nothing more: no clipboard, no links but to the web. */
export default function Screen({ id, shown, onTitle, onEnded }: ScreenProps) {
  const place = useRef<HTMLDivElement>(null);
  const held = useRef<{ terminal: Terminal; fit: () => void } | null>(null);
  const latest = useRef({ onTitle, onEnded });
  useEffect(() => {
    latest.current = { onTitle, onEnded };
  });

  useEffect(() => {
    if (place.current === null) return;
    const parent = place.current;
    const terminal = new Terminal({
      fontFamily: 'ui-monospace, "SF Mono", Menlo, "DejaVu Sans Mono", monospace',
      fontSize: 14,
      scrollback: 10_000,
      cursorBlink: true,
      theme: colours(),
      linkHandler: { activate: (_, text) => openLink(text), allowNonHttpProtocols: false },
    });
    const fitting = new FitAddon();
    terminal.loadAddon(fitting);
    terminal.loadAddon(new WebLinksAddon((_, text) => openLink(text)));
    // A program inside does not get to write what the owner pastes next.
    terminal.parser.registerOscHandler(52, () => true);
    const removeStyles = withConstructedStyles(() => terminal.open(parent));
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
    terminal.onData((text) => {
      if (socket?.readyState === WebSocket.OPEN) socket.send(encoder.encode(text));
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
    held.current = { terminal, fit };
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

  return <div ref={place} className="screen" data-keys="terminal" data-terminal={id} hidden={!shown} />;
}
