import { useEffect, useState } from "react";
import { download } from "../../../client/http";
import { CopyButton } from "../../../ui/CopyButton";
import { Icon } from "../../../ui/Icon";
import { PathLink } from "./PathLink";
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
              <PromptImage
                key={index}
                address={`/v1/sessions/${encodeURIComponent(session)}/turns/${item.turn}/images/${index}`}
                name={`Image ${index + 1} of ${item.images.length}`}
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

function PromptImage({ address, name, type }: { address: string; name: string; type: string }) {
  const [missing, setMissing] = useState(false);
  const [shown, setShown] = useState<string | undefined>(undefined);
  useEffect(() => {
    let blob: string | undefined;
    let current = true;
    download(address).then(
      ({ bytes }) => {
        if (!current) return;
        blob = URL.createObjectURL(new Blob([bytes], { type }));
        setShown(blob);
      },
      () => current && setMissing(true),
    );
    return () => {
      current = false;
      if (blob !== undefined) URL.revokeObjectURL(blob);
    };
  }, [address, type]);
  if (missing)
    return (
      <span className="conversation-image" role="img" aria-label={`${name}, ${type}, is no longer stored`}>
        <Icon name="image" size={24} />
      </span>
    );
  return (
    <a href={shown} target="_blank" rel="noopener noreferrer">
      <img className="conversation-image" src={shown} alt={name} onError={() => setMissing(true)} />
    </a>
  );
}
