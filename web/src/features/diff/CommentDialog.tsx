import { useState } from "react";
import { Dialog } from "../../ui/Dialog";
import { insidePath, type Comment, type Spot } from "./diff.logic";

/** Asks what is to be said of one line. */
export function CommentDialog({ spot, said, onClose, onSay }: { spot: Spot; said: string; onClose: () => void; onSay: (comment: Comment) => void }) {
  const [text, setText] = useState(said);
  const say = (words: string) => {
    onSay({ ...spot, text: words });
    onClose();
  };
  return (
    <Dialog title={`${insidePath(spot.path)}:${spot.line}${spot.side === "old" ? " (removed)" : ""}`} onClose={onClose} wide>
      <pre className="comment-quote">{spot.quote || " "}</pre>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          say(text);
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
                say(text);
              }
            }}
          />
        </label>
        <div className="dialog-foot">
          {said !== "" && (
            <button type="button" className="danger" onClick={() => say("")}>
              Remove
            </button>
          )}
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button className="primary" disabled={text.trim() === ""}>
            Keep comment
          </button>
        </div>
      </form>
    </Dialog>
  );
}
