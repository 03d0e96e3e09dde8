import { useState } from "react";
import { Dialog } from "../../ui/Dialog";
import { type Comment, type CommentedLine, pathInside } from "./diff.logic";

/** Adds, changes or removes the comment on one line. */
export function CommentDialog({
  line,
  current,
  onClose,
  onSave,
}: {
  line: CommentedLine;
  current: string;
  onClose: () => void;
  onSave: (comment: Comment) => void;
}) {
  const [text, setText] = useState(current);
  const save = (words: string) => {
    onSave({ ...line, text: words });
    onClose();
  };
  return (
    <Dialog
      title={`${pathInside(line.path)}:${line.line}${line.side === "old" ? " (removed)" : ""}`}
      onClose={onClose}
      wide
    >
      <pre className="diff-quote">{line.quote || " "}</pre>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          save(text);
        }}
      >
        <label>
          Comment
          <textarea
            autoFocus
            rows={4}
            value={text}
            onChange={(event) => setText(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
                event.preventDefault();
                save(text);
              }
            }}
          />
        </label>
        <div className="dialog-foot">
          {current !== "" && (
            <button type="button" className="danger" onClick={() => save("")}>
              Remove comment
            </button>
          )}
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button className="primary" disabled={text.trim() === ""}>
            Save comment
          </button>
        </div>
      </form>
    </Dialog>
  );
}
