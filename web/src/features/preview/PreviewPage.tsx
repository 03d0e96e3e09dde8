import { useEffect, useRef, useState, useSyncExternalStore } from "react";
import type { PreviewPorts } from "../../client/api";
import { useAnswer } from "../../ui/answers";
import { Icon } from "../../ui/Icon";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import { useTopic } from "../shell/live";
import { go, useRoute } from "../shell/route";
import { AddressBar } from "./AddressBar";
import { openInTab, useOpened } from "./opened";
import { PortPicker } from "./PortPicker";
import { choosePort, pixelsOf, readPort, WIDTHS, type Width } from "./preview.logic";
import { PreviewFrame } from "./PreviewFrame";
import "./preview.css";

const KEY = "freehold.preview.width";

const SMALL = matchMedia("(max-width: 760px)");

function listenSmall(changed: () => void): () => void {
  SMALL.addEventListener("change", changed);
  return () => SMALL.removeEventListener("change", changed);
}

/** Whether the screen is a small one itself: then there is no choice of widths. */
const useSmall = (): boolean => useSyncExternalStore(listenSmall, () => SMALL.matches);

function readWidth(): Width {
  const said = sessionStorage.getItem(KEY);
  return WIDTHS.find((one) => one.width === said)?.width ?? "full";
}

/** What runs in the computer, on an origin of its own: it can neither see this page nor act on it. */
export default function PreviewPage() {
  const { query } = useRoute();
  const { value, problem, reload, put } = useAnswer<PreviewPorts>("/v1/preview/ports");
  useTopic("ports", { event: (data) => put(data as PreviewPorts), resync: reload });
  const [width, setWidth] = useState(readWidth);
  const small = useSmall();
  const toasts = useToasts();
  const ports = value?.ports ?? [];
  const port = value === null ? null : choosePort(ports, readPort(query.get("port")));
  const listens = ports.some((one) => one.port === port);
  const { opened, problem: refused, open } = useOpened(port);

  // An app that came back is shown as it is now; one that was away had nothing more to say.
  const before = useRef({ port, listens });
  useEffect(() => {
    if (listens && before.current.port === port && !before.current.listens) open();
    before.current = { port, listens };
  }, [port, listens, open]);

  function draw(chosen: Width) {
    sessionStorage.setItem(KEY, chosen);
    setWidth(chosen);
  }

  if (problem !== null && value === null)
    return (
      <div className="column">
        <h1>Preview</h1>
        <Notice problem={problem} action={{ label: "Try again", run: reload }} />
      </div>
    );
  if (value === null) return <p className="loading quiet">Looking for what runs…</p>;
  if (port === null) return <NothingRuns />;
  return (
    <div className="preview">
      <header className="preview-bar">
        <h1 className="unseen">Preview</h1>
        <PortPicker ports={ports} port={port} onChoose={(chosen) => go(`/preview?port=${chosen}`)} />
        <button className="plain-button" aria-label="Reload" title="Reload" onClick={() => open()}>
          <Icon name="reload" />
        </button>
        {opened && <AddressBar key={`${opened.origin}${opened.path}`} origin={opened.origin} path={opened.path} onGo={open} />}
        <div className="preview-widths" role="group" aria-label="Width">
          {WIDTHS.map((one) => (
            <button
              key={one.width}
              className="plain-button"
              aria-label={one.label}
              title={one.pixels === null ? one.label : `${one.label}, ${one.pixels} px`}
              aria-pressed={width === one.width}
              onClick={() => draw(one.width)}
            >
              <Icon name={one.width} />
            </button>
          ))}
        </div>
        <button
          className="plain-button"
          aria-label="Open in a tab"
          title="Open in a tab"
          onClick={() => void openInTab(port, opened?.path ?? "/").catch(toasts.failed)}
        >
          <Icon name="out" />
        </button>
      </header>
      {!listens && (
        <p className="bar preview-away" role="status">
          <span className="spinner" aria-hidden="true" />
          <span>
            Nothing listens on port {port}. What begins to is shown by itself{ports.length > 0 && "; or choose another port above"}.
          </span>
        </p>
      )}
      {refused && (
        <div className="column">
          <Notice problem={refused} action={{ label: "Try again", run: () => open() }} />
        </div>
      )}
      {opened && <PreviewFrame key={opened.turn} opened={opened} pixels={small ? null : pixelsOf(width)} />}
    </div>
  );
}

function NothingRuns() {
  return (
    <div className="preview-none">
      <Icon name="preview" size={40} />
      <h1>Nothing runs yet</h1>
      <p className="quiet">
        Whatever listens on a port in the computer is shown here by itself. Ask an agent to start the app, or start it in a terminal, for
        example with <code>npm run dev</code> or <code>python3 -m http.server 8000</code>.
      </p>
      <div className="toolbar">
        <button className="primary" onClick={() => go("/terminal?new=1")}>
          Open a terminal
        </button>
        <button onClick={() => go("/sessions")}>Ask an agent</button>
      </div>
      <p className="quiet preview-tip">
        To have it run whenever the computer does, name it in <code>[computer.services]</code> of freehold.toml.
      </p>
    </div>
  );
}
