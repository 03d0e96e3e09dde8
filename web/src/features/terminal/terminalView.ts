import { FitAddon } from "@xterm/addon-fit";
import { SearchAddon } from "@xterm/addon-search";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { Terminal } from "@xterm/xterm";
import { THEME_CHANGED } from "../../ui/theme";
import { OutputQueue } from "./outputQueue";
import { safeLink, terminalKeyAction, withControl } from "./terminal.logic";
import { TerminalFilter } from "./terminalFilter.logic";
import { TerminalSocket } from "./terminalSocket";
import { matchColours, terminalTheme } from "./terminalTheme";
import { openWithConstructedStyles, replaceStyleAttributes } from "./xtermStyles";

const RESET = { text: "\x1bc", cost: 1 };
const ENDED = { text: "\r\n\x1b[2m— ended —\x1b[0m\r\n", cost: 1 };

export interface Matches {
  position: number;
  count: number;
}

export interface TerminalHandlers {
  onTitle: (title: string) => void;
  onEnded: () => void;
  /** A link of a program, whose text may differ from its address: the owner is asked. */
  onLink: (address: string) => void;
  onFind: () => void;
  onMatches: (matches: Matches) => void;
  /** Whether Ctrl is pressed on the row of keys. If so, it is released. */
  takeControl: () => boolean;
}

export interface TerminalView {
  terminal: Terminal;
  send: (text: string) => void;
  resize: () => void;
  /** Searches backwards or forwards; an empty text clears the search. */
  search: (text: string, backwards: boolean) => void;
  dispose: () => void;
}

async function copy(text: string) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without https there is no clipboard interface. The terminal handles the copy event of the browser.
    document.execCommand("copy");
  }
}

function openLink(text: string) {
  const address = safeLink(text);
  if (address !== null) window.open(address, "_blank", "noopener,noreferrer");
}

function createTerminal(handlers: TerminalHandlers): Terminal {
  const terminal = new Terminal({
    fontFamily: 'ui-monospace, "SF Mono", Menlo, "DejaVu Sans Mono", monospace',
    fontSize: 14,
    // At 1 a row is cut off where an underscore is drawn.
    lineHeight: 1.2,
    scrollback: 10_000,
    cursorBlink: true,
    theme: terminalTheme(),
    // The marks of a search need an interface that xterm still calls proposed.
    allowProposedApi: true,
    linkHandler: {
      activate: (_, text) => {
        const address = safeLink(text);
        if (address !== null) handlers.onLink(address);
      },
      allowNonHttpProtocols: false,
    },
  });
  terminal.loadAddon(new WebLinksAddon((_, text) => openLink(text)));
  // Programs in the terminal may not write to the clipboard.
  terminal.parser.registerOscHandler(52, () => true);
  terminal.attachCustomKeyEventHandler((event) => {
    const action = terminalKeyAction(event, terminal.buffer.active.type === "alternate");
    if (action === null) return true;
    // Pasting is done by the browser, which needs no permission.
    if (action !== "paste") event.preventDefault();
    if (action === "find") handlers.onFind();
    if (action === "copy" && terminal.hasSelection()) void copy(terminal.getSelection());
    return false;
  });
  return terminal;
}

const TITLE_INTERVAL = 500;

/** Reports the last of many titles, at most twice a second. */
function reportTitles(terminal: Terminal, onTitle: (title: string) => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let latest = "";
  terminal.onTitleChange((title) => {
    latest = title;
    timer ??= setTimeout(() => {
      timer = undefined;
      onTitle(latest);
    }, TITLE_INTERVAL);
  });
  return () => clearTimeout(timer);
}

/** Opens a terminal in an element and connects it. What a program writes is drawn here and can do nothing else. */
export function openTerminal(parent: HTMLElement, id: string, handlers: TerminalHandlers): TerminalView {
  const terminal = createTerminal(handlers);
  const fitAddon = new FitAddon();
  const searchAddon = new SearchAddon();
  terminal.loadAddon(fitAddon);
  terminal.loadAddon(searchAddon);
  searchAddon.onDidChangeResults(({ resultIndex, resultCount }) =>
    handlers.onMatches({ position: resultIndex + 1, count: resultCount }),
  );
  const removeStyles = openWithConstructedStyles(() => terminal.open(parent));
  replaceStyleAttributes(terminal);

  const stopTitles = reportTitles(terminal, handlers.onTitle);
  const queue = new OutputQueue({
    draw: (text, done) => terminal.write(text, done),
    onOverflow: () => socket.reconnect(),
  });
  const screen = () => ({ rows: terminal.rows, columns: terminal.cols });
  let filter = new TerminalFilter(screen);
  const sendSize = () => socket.sendSize(terminal.rows, terminal.cols);
  const resize = () => {
    if (parent.offsetParent === null) return;
    const before = `${terminal.rows} ${terminal.cols}`;
    fitAddon.fit();
    if (before !== `${terminal.rows} ${terminal.cols}`) sendSize();
  };
  const socket = new TerminalSocket(id, {
    onOpen: () => {
      filter = new TerminalFilter(screen);
      queue.clear();
      queue.add([RESET]);
      resize();
      sendSize();
    },
    onOutput: (bytes) => queue.add(filter.feed(bytes)),
    onEnded: () => {
      queue.add([ENDED]);
      handlers.onEnded();
    },
  });
  terminal.onData((text) => socket.sendText(handlers.takeControl() ? withControl(text) : text));
  terminal.onBinary((text) => socket.sendBinary(text));

  const observer = new ResizeObserver(resize);
  observer.observe(parent);
  const updateTheme = () => {
    terminal.options.theme = terminalTheme();
  };
  const colourScheme = matchMedia("(prefers-color-scheme: dark)");
  colourScheme.addEventListener("change", updateTheme);
  window.addEventListener(THEME_CHANGED, updateTheme);
  resize();
  socket.connect();
  return {
    terminal,
    send: (text) => socket.sendText(text),
    resize,
    search: (text, backwards) => {
      const options = { decorations: matchColours(), incremental: false };
      if (text === "") searchAddon.clearDecorations();
      else if (backwards) searchAddon.findPrevious(text, { decorations: options.decorations });
      else searchAddon.findNext(text, options);
    },
    dispose: () => {
      observer.disconnect();
      colourScheme.removeEventListener("change", updateTheme);
      window.removeEventListener(THEME_CHANGED, updateTheme);
      stopTitles();
      queue.clear();
      socket.close();
      terminal.dispose();
      removeStyles();
    },
  };
}
