import { useEffect, useState } from "react";
import type { Document } from "../../client/api";
import { download, type Problem, problemOf } from "../../client/http";
import { Dialog } from "../../ui/Dialog";
import { Notice } from "../../ui/Notice";
import { PlainText } from "../../ui/PlainText";
import { visibleText } from "../../ui/visibleText";
import { addressOf, factsOf, nameOf } from "./pods.logic";

/** A document that is text, as it is. */
export function DocumentDialog({ entry, onClose }: { entry: Document; onClose: () => void }) {
  const [text, setText] = useState<string | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    let isShown = true;
    download(addressOf(entry.path)).then(
      ({ bytes }) => isShown && setText(new TextDecoder().decode(bytes)),
      (error: unknown) => isShown && setProblem(problemOf(error)),
    );
    return () => {
      isShown = false;
    };
  }, [entry.path]);
  return (
    <Dialog title={visibleText(nameOf(entry.path))} onClose={onClose} wide>
      <p className="quiet">{factsOf(entry)}</p>
      {problem && <Notice problem={problem} />}
      {text === null && !problem && (
        <p className="quiet" role="status">
          Loading…
        </p>
      )}
      {text !== null && (
        <div className="pods-text">
          <PlainText text={text} label={visibleText(nameOf(entry.path))} />
        </div>
      )}
      <div className="dialog-foot">
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
