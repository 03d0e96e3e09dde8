import { useEffect, useRef } from "react";
import { Icon } from "../../../ui/Icon";
import { unhidden } from "../../../ui/unhidden";

export interface Suggestion {
  word: string;
  about: string;
  icon: "file" | "folder" | "terminal";
}

export const optionId = (index: number) => `suggestion-${index}`;
export const LIST = "suggestions";

/** What could be meant, above the place to write. The focus stays where one types. */
export function Suggestions({ label, all, chosen, note, onPick }: { label: string; all: readonly Suggestion[]; chosen: number; note: string; onPick: (index: number) => void }) {
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  return (
    <div className="suggestions">
      {all.length > 0 && (
        <ul ref={list} id={LIST} role="listbox" aria-label={label}>
          {all.map((one, index) => (
            <li
              key={one.word}
              id={optionId(index)}
              role="option"
              aria-selected={index === chosen}
              onMouseDown={(event) => {
                event.preventDefault();
                onPick(index);
              }}
            >
              <Icon name={one.icon} size={16} />
              <span className="suggestion-word">{unhidden(one.word)}</span>
              <span className="quiet">{unhidden(one.about)}</span>
            </li>
          ))}
        </ul>
      )}
      {all.length === 0 && <p className="quiet">{note}</p>}
    </div>
  );
}
