import { useEffect, useRef, useState } from "react";
import { useNow } from "../../ui/answers";
import { ago, fullMoment } from "../../ui/moments";
import { Notice } from "../../ui/Notice";
import { TwoPress } from "../../ui/TwoPress";
import { useStop } from "../stop/stop";

/** The kill switch: two presses stop everything, one lets it go on. `ask` is a first press that was made elsewhere. */
export function StopSwitch({ ask, onAsked }: { ask: boolean; onAsked: () => void }) {
  const { value, problem, reload, stop, lift } = useStop();
  const [asked, setAsked] = useState(0);
  const now = useNow();
  const latest = useRef(onAsked);
  useEffect(() => {
    latest.current = onAsked;
  });
  useEffect(() => {
    if (!ask) return;
    setAsked((count) => count + 1);
    latest.current();
  }, [ask]);
  if (problem && value === null) return <Notice problem={problem} action={{ label: "Try again", run: reload }} />;
  if (value?.stopped) {
    const at = value.at === null ? null : new Date(value.at).getTime() / 1000;
    return (
      <section className="card stop" data-stopped="true" aria-label="Kill switch">
        <p role="status">
          <strong>Everything is stopped</strong>
          {at !== null && (
            <>
              , <time title={fullMoment(at)}>{ago(at, now)}</time>
            </>
          )}
          {value.who && ` by ${value.who}`}.{value.why && ` “${value.why}”`}
        </p>
        <button className="primary" onClick={() => void lift()}>
          Let agents work again
        </button>
      </section>
    );
  }
  return (
    <section className="card stop" aria-label="Kill switch">
      <TwoPress
        className="stop-button"
        label="Stop everything"
        sure="Press again to stop"
        asked={asked}
        disabled={value === null}
        onSure={() => {
          setAsked(0);
          void stop("");
        }}
      />
      <p className="quiet">Every agent ends and no model is asked, until you lift it. Files, history and undo go on working.</p>
    </section>
  );
}
