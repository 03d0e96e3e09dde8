import { type KeyboardEvent, useId } from "react";
import { Icon } from "../../ui/Icon";
import { visibleText } from "../../ui/visibleText";
import { tabNames } from "./openTabs.logic";

interface FileTabsProps {
  tabs: readonly string[];
  chosen: string;
  unsaved: ReadonlyMap<string, unknown>;
  onChoose: (path: string) => void;
  onClose: (path: string) => void;
}

/** The open files. Arrow keys move between them, and Delete closes one. */
export function FileTabs({ tabs, chosen, unsaved, onChoose, onClose }: FileTabsProps) {
  const names = tabNames(tabs);
  const id = useId();
  function press(event: KeyboardEvent<HTMLElement>, at: number) {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    const next = tabs[at + step];
    if (event.key === "Delete") onClose(tabs[at] ?? "");
    else if (step === 0 || next === undefined) return;
    else {
      onChoose(next);
      event.currentTarget.parentElement?.parentElement?.querySelectorAll<HTMLElement>("[role=tab]")[at + step]?.focus();
    }
    event.preventDefault();
  }
  return (
    <div className="files-tabs">
      {/* A list of tabs may hold nothing but tabs, so it owns them, and the buttons that close are beside them. */}
      <span role="tablist" aria-label="Open files" aria-owns={tabs.map((_, at) => `${id}-${at}`).join(" ")} />
      {tabs.map((path, index) => (
        <div key={path} className="files-tab" data-current={path === chosen || undefined}>
          <button
            type="button"
            id={`${id}-${index}`}
            role="tab"
            aria-selected={path === chosen}
            tabIndex={path === chosen ? 0 : -1}
            title={visibleText(path)}
            onClick={() => onChoose(path)}
            onAuxClick={(event) => event.button === 1 && onClose(path)}
            onKeyDown={(event) => press(event, index)}
          >
            {visibleText(names.get(path) ?? path)}
            {unsaved.has(path) && <span className="dot" role="img" aria-label="not saved" />}
          </button>
          <button
            type="button"
            className="plain-button"
            tabIndex={path === chosen ? 0 : -1}
            aria-label={`Close ${visibleText(path)}`}
            onClick={() => onClose(path)}
          >
            <Icon name="close" size={14} />
          </button>
        </div>
      ))}
    </div>
  );
}
