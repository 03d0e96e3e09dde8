import { CopyButton } from "../../../ui/CopyButton";
import { Icon } from "../../../ui/Icon";
import { PathLink } from "./PathLink";
import { StoredImage } from "./StoredImage";
import type { Item } from "./transcript.logic";
import { useFold, useTranscript } from "./transcriptContext";

type Prompt = Extract<Item, { kind: "prompt" }>;

const MAX_LENGTH = 1_500;
const MAX_LINES = 18;

/** A prompt of the owner with its images and files. */
export function PromptItem({ item }: { item: Prompt }) {
  const { session, onRewind } = useTranscript();
  const lines = item.text.split("\n");
  const isLong = item.text.length > MAX_LENGTH || lines.length > MAX_LINES;
  const [open, toggle] = useFold(item.key);
  const shown =
    isLong && !open ? `${lines.slice(0, MAX_LINES).join("\n").slice(0, MAX_LENGTH).trimEnd()} …` : item.text;
  return (
    <article className="conversation-prompt" data-queued={item.queued || undefined} aria-label="You">
      <div className="conversation-bubble" dir="auto">
        {item.images.length > 0 && (
          <div className="conversation-images">
            {item.images.map((image, index) => (
              <StoredImage
                key={index}
                address={`/v1/sessions/${encodeURIComponent(session)}/turns/${item.turn}/images/${index}`}
                title={`Image ${index + 1} of ${item.images.length}`}
                type={image.mime}
              />
            ))}
          </div>
        )}
        <p>{shown}</p>
        {isLong && (
          <button type="button" className="text-button" aria-expanded={open} onClick={toggle}>
            {open ? "Show less" : "Show all"}
          </button>
        )}
        {item.files.length > 0 && (
          <p className="conversation-files">
            {item.files.map((path) => (
              <PathLink key={path} path={path} />
            ))}
          </p>
        )}
      </div>
      {item.queued ? (
        <p className="conversation-queued">Queued until the agent can start on it</p>
      ) : (
        <div className="conversation-prompt-actions">
          <CopyButton text={item.text} />
          <button
            type="button"
            className="copy-button"
            onClick={() => onRewind(item.turn)}
            aria-label="Rewind to before this"
          >
            <Icon name="undo" size={14} />
            <span aria-hidden="true">Rewind</span>
          </button>
        </div>
      )}
    </article>
  );
}
