import { useState } from "react";
import { Icon } from "../../../ui/Icon";
import { Copy } from "../../markdown/Code";
import { useFold, useShared } from "./context";
import { Place } from "./ToolCard";
import type { Item } from "./transcript.logic";

type Prompt = Extract<Item, { kind: "prompt" }>;

const LONG = 1_500;
const MANY_LINES = 18;

/** What the owner said: their words as they are, and what came with them. */
export function PromptPart({ item }: { item: Prompt }) {
  const { session, rewind } = useShared();
  const lines = item.text.split("\n");
  const long = item.text.length > LONG || lines.length > MANY_LINES;
  const [all, fold] = useFold(item.key);
  const shown = long && !all ? `${lines.slice(0, MANY_LINES).join("\n").slice(0, LONG).trimEnd()} …` : item.text;
  return (
    <article className="mine" data-waits={item.waits || undefined} aria-label="You">
      <div className="mine-bubble" dir="auto">
        {item.images.length > 0 && (
          <div className="mine-images">
            {item.images.map((image, index) => (
              <PromptImage key={index} address={`/v1/sessions/${encodeURIComponent(session)}/turns/${item.turn}/images/${index}`} name={`Image ${index + 1} of ${item.images.length}`} what={image.mime} />
            ))}
          </div>
        )}
        <p>{shown}</p>
        {long && (
          <button className="text-button" aria-expanded={all} onClick={fold}>
            {all ? "Show less" : "Show all"}
          </button>
        )}
        {item.files.length > 0 && (
          <p className="mine-files">
            {item.files.map((path) => (
              <Place key={path} path={path} />
            ))}
          </p>
        )}
      </div>
      {item.waits ? (
        <p className="mine-note">Waits until this is done</p>
      ) : (
        <div className="mine-actions">
          <Copy text={item.text} label="Copy" />
          <button className="copy" onClick={() => rewind(item.turn)} aria-label="Rewind to before this">
            <Icon name="undo" size={14} />
            <span aria-hidden="true">Rewind</span>
          </button>
        </div>
      )}
    </article>
  );
}

function PromptImage({ address, name, what }: { address: string; name: string; what: string }) {
  const [gone, setGone] = useState(false);
  if (gone)
    return (
      <span className="mine-image" role="img" aria-label={`${name}, ${what}, is not kept`}>
        <Icon name="image" size={24} />
      </span>
    );
  return (
    <a href={address} target="_blank" rel="noopener noreferrer">
      <img className="mine-image" src={address} alt={name} onError={() => setGone(true)} />
    </a>
  );
}
