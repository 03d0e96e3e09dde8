import { useEffect, useRef } from "react";
import { Icon } from "../../../ui/Icon";
import { visibleText } from "../../../ui/visibleText";

export interface Suggestion {
  word: string;
  description: string;
  icon: "file" | "folder" | "terminal";
}

export const optionId = (index: number) => `suggestion-${index}`;
export const LIST_ID = "suggestions";

interface SuggestionListProps {
  label: string;
  suggestions: readonly Suggestion[];
  chosen: number;
  /** Shown when there are none. */
  note: string;
  onAccept: (index: number) => void;
}

/** The suggestions above the message. The focus stays in the field. */
export function SuggestionList({ label, suggestions, chosen, note, onAccept }: SuggestionListProps) {
  const list = useRef<HTMLUListElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the chosen one is scrolled into view
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  return (
    <div className="composer-suggestions">
      {suggestions.length > 0 && (
        <ul ref={list} id={LIST_ID} role="listbox" aria-label={label}>
          {suggestions.map((one, index) => (
            <li
              key={one.word}
              id={optionId(index)}
              role="option"
              aria-selected={index === chosen}
              onMouseDown={(event) => {
                event.preventDefault();
                onAccept(index);
              }}
            >
              <Icon name={one.icon} size={16} />
              <span className="composer-suggestion">{visibleText(one.word)}</span>
              <span className="quiet">{visibleText(one.description)}</span>
            </li>
          ))}
        </ul>
      )}
      {suggestions.length === 0 && <p className="quiet">{note}</p>}
    </div>
  );
}
