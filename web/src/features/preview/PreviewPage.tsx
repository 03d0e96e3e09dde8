import { useEffect, useRef, useState } from "react";
import type { PreviewPorts } from "../../client/api";
import { useTopic } from "../../data/connection";
import { useResource } from "../../data/resource";
import { Icon } from "../../ui/Icon";
import { Notice } from "../../ui/Notice";
import { useIsInPane } from "../../ui/pane";
import { useGo, useRoute } from "../../ui/route";
import { useToasts } from "../../ui/Toasts";
import { useNarrowScreen } from "../../ui/useNarrowScreen";
import { AddressBar } from "./AddressBar";
import { PortPicker } from "./PortPicker";
import { PreviewFrame } from "./PreviewFrame";
import { choosePort, hasChangedFile, pixelsOf, readPort, WIDTHS, type Width } from "./preview.logic";
import { openInTab, usePreview } from "./usePreview";
import "./preview.css";

const WIDTH_KEY = "freehold.preview.width";
const RELOAD_KEY = "freehold.preview.reload";
/** Milliseconds without a change after which the page is loaded again. */
const RELOAD_DELAY = 800;

function readWidth(): Width {
  const stored = sessionStorage.getItem(WIDTH_KEY);
  return WIDTHS.find((one) => one.width === stored)?.width ?? "full";
}

/** Shows a web server of the computer on an origin of its own, which cannot read or control this page. */
export default function PreviewPage() {
  const { query } = useRoute();
  const go = useGo();
  const { value, problem, reload } = useResource<PreviewPorts>("/v1/preview/ports", {
    topic: "ports",
    apply: (_, event) => event as PreviewPorts,
  });
  const [width, setWidth] = useState(readWidth);
  const isNarrow = useNarrowScreen();
  const toasts = useToasts();
  const ports = value?.ports ?? [];
  const port = value === null ? null : choosePort(ports, readPort(query.get("port")));
  const isListening = ports.some((one) => one.port === port);
  const { preview, problem: openProblem, open } = usePreview(port);

  // When a server starts again, its page is loaded again.
  const before = useRef({ port, isListening });
  useEffect(() => {
    if (isListening && before.current.port === port && !before.current.isListening) open();
    before.current = { port, isListening };
  }, [port, isListening, open]);

  const [follows, setFollows] = useReloading(open, isListening);

  function chooseWidth(chosen: Width) {
    sessionStorage.setItem(WIDTH_KEY, chosen);
    setWidth(chosen);
  }

  if (problem !== null && value === null)
    return (
      <div className="column">
        <h1>Preview</h1>
        <Notice problem={problem} action={{ label: "Try again", run: reload }} />
      </div>
    );
  if (value === null) return <p className="loading quiet">Looking for servers…</p>;
  if (port === null) return <NoServer />;
  return (
    <div className="preview">
      <header className="preview-bar">
        <h1 className="visually-hidden">Preview</h1>
        <PortPicker ports={ports} port={port} onChoose={(chosen) => go(`/preview?port=${chosen}`)} />
        <button className="plain-button" aria-label="Reload" title="Reload" onClick={() => open()}>
          <Icon name="reload" />
        </button>
        {follows !== null && (
          <button
            className="plain-button"
            aria-label="Reload when files change"
            title="Reload when files change"
            aria-pressed={follows}
            onClick={() => setFollows(!follows)}
          >
            <Icon name="pulse" />
          </button>
        )}
        {preview && (
          <AddressBar
            key={`${preview.origin}${preview.path}`}
            origin={preview.origin}
            path={preview.path}
            onGo={open}
          />
        )}
        <div className="preview-widths" role="group" aria-label="Width">
          {WIDTHS.map((one) => (
            <button
              key={one.width}
              className="plain-button"
              aria-label={one.label}
              title={one.pixels === null ? one.label : `${one.label}, ${one.pixels} px`}
              aria-pressed={width === one.width}
              onClick={() => chooseWidth(one.width)}
            >
              <Icon name={one.width} />
            </button>
          ))}
        </div>
        <button
          className="plain-button"
          aria-label="Open in a new tab"
          title="Open in a new tab"
          onClick={() => void openInTab(port, preview?.path ?? "/").catch(toasts.failed)}
        >
          <Icon name="out" />
        </button>
      </header>
      {!isListening && (
        <p className="bar preview-away" role="status">
          <span className="spinner" aria-hidden="true" />
          <span>
            No program listens on port {port}. The preview opens when one does.
            {ports.length > 0 && " You can also choose another port above."}
          </span>
        </p>
      )}
      {openProblem && (
        <div className="column">
          <Notice problem={openProblem} action={{ label: "Try again", run: () => open() }} />
        </div>
      )}
      {preview && <PreviewFrame key={preview.opening} preview={preview} pixels={isNarrow ? null : pixelsOf(width)} />}
    </div>
  );
}

/** Beside a conversation the page is loaded again when files change, unless the owner switches that off. */
function useReloading(open: () => void, isListening: boolean): [follows: boolean | null, set: (on: boolean) => void] {
  const isInPane = useIsInPane();
  const [isOn, setOn] = useState(() => localStorage.getItem(RELOAD_KEY) !== "off");
  const timer = useRef(0);
  const isWanted = isInPane && isOn && isListening;
  useTopic(isWanted ? "files" : null, {
    event: (data) => {
      if (!hasChangedFile(data)) return;
      clearTimeout(timer.current);
      timer.current = window.setTimeout(open, RELOAD_DELAY);
    },
  });
  useEffect(() => {
    if (!isWanted) clearTimeout(timer.current);
    return () => clearTimeout(timer.current);
  }, [isWanted]);
  const set = (on: boolean) => {
    localStorage.setItem(RELOAD_KEY, on ? "on" : "off");
    setOn(on);
  };
  return [isInPane ? isOn : null, set];
}

function NoServer() {
  const go = useGo();
  return (
    <div className="preview-none">
      <Icon name="preview" size={40} />
      <h1>No server is running</h1>
      <p className="quiet">
        A web server in the computer is shown here when it starts. Ask an agent to start your app, or start it in a
        terminal, for example with <code>npm run dev</code> or <code>python3 -m http.server 8000</code>.
      </p>
      <div className="toolbar">
        <button className="primary" onClick={() => go("/terminal?new=1")}>
          Open a terminal
        </button>
        <button onClick={() => go("/sessions")}>Open a session</button>
      </div>
      <p className="quiet preview-tip">
        To start it with the computer, add it to <code>[computer.services]</code> in freehold.toml.
      </p>
    </div>
  );
}
