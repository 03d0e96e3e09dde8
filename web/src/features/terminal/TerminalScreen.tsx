import "@xterm/xterm/css/xterm.css";
import { type Ref, useEffect, useImperativeHandle, useRef, useState } from "react";
import { FindBar } from "./FindBar";
import { type SoftKey, softKeyBytes } from "./terminal.logic";
import { type Matches, openTerminal, type TerminalView } from "./terminalView";

export interface TerminalHandle {
  press: (key: SoftKey) => void;
  paste: () => void;
  find: () => void;
}

interface TerminalScreenProps {
  id: string;
  shown: boolean;
  /** Ctrl is pressed on the row of keys: it applies to the next key. */
  control: boolean;
  onControlUsed: () => void;
  onTitle: (title: string) => void;
  onEnded: () => void;
  onLink: (address: string) => void;
  ref: Ref<TerminalHandle>;
}

/** One terminal. */
export default function TerminalScreen(props: TerminalScreenProps) {
  const { id, shown, ref } = props;
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<TerminalView | null>(null);
  const latest = useRef(props);
  const [finding, setFinding] = useState(false);
  const [matches, setMatches] = useState<Matches | null>(null);
  useEffect(() => {
    latest.current = props;
  });

  useEffect(() => {
    if (place.current === null) return;
    const opened = openTerminal(place.current, id, {
      onTitle: (title) => latest.current.onTitle(title),
      onEnded: () => latest.current.onEnded(),
      onLink: (address) => latest.current.onLink(address),
      onFind: () => setFinding(true),
      onMatches: setMatches,
      takeControl: () => {
        if (!latest.current.control) return false;
        latest.current.onControlUsed();
        return true;
      },
    });
    view.current = opened;
    return () => {
      opened.dispose();
      view.current = null;
    };
  }, [id]);

  useEffect(() => {
    if (!shown) return;
    view.current?.resize();
    view.current?.terminal.focus();
  }, [shown]);

  useImperativeHandle(
    ref,
    () => ({
      press(key) {
        const { terminal, send } = view.current ?? {};
        if (terminal === undefined || send === undefined) return;
        send(softKeyBytes(key, terminal.modes.applicationCursorKeysMode));
        terminal.focus();
      },
      paste() {
        const terminal = view.current?.terminal;
        void navigator.clipboard
          ?.readText()
          .then((text) => terminal?.paste(text))
          .catch(() => undefined);
        terminal?.focus();
      },
      find: () => setFinding(true),
    }),
    [],
  );

  function find(text: string, backwards: boolean) {
    view.current?.search(text, backwards);
    if (text === "") setMatches(null);
  }

  return (
    <div className="terminal-screen" data-keys="terminal" data-terminal={id} hidden={!shown}>
      <div ref={place} className="terminal-lines" />
      {finding && (
        <FindBar
          matches={matches}
          onFind={find}
          onClose={() => {
            find("", true);
            setFinding(false);
            view.current?.terminal.focus();
          }}
        />
      )}
    </div>
  );
}
