import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useEffect, useRef } from "react";
import { Icon } from "../../ui/Icon";
import { type FileKind, folderOf, type TreeRow } from "./tree.logic";

interface TreeListProps {
  rows: readonly TreeRow[];
  chosen: string | null;
  highlighted: ReadonlySet<string>;
  unsaved: ReadonlyMap<string, unknown>;
  onChoose: (path: string, kind: FileKind) => void;
  /** The last row in view is the last of this folder. */
  onEndOf: (folder: string) => void;
}

const ROW_HEIGHT = 32;

/** The tree of files. Only the rows in view are drawn. */
export function TreeList({ rows, chosen, highlighted, unsaved, onChoose, onEndOf }: TreeListProps) {
  const pane = useRef<HTMLDivElement>(null);
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => pane.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: 12,
  });

  const lastIndex = list.getVirtualItems().at(-1)?.index ?? -1;
  const last = rows[lastIndex];
  const following = rows[lastIndex + 1];
  const ended =
    last !== undefined && (following === undefined || folderOf(following.path) !== folderOf(last.path))
      ? folderOf(last.path)
      : null;
  useEffect(() => {
    if (ended !== null) onEndOf(ended);
  });

  function move(event: KeyboardEvent) {
    const at = Number((event.target as HTMLElement).dataset["index"] ?? -1);
    const row = rows[at];
    if (row === undefined) return;
    let to = at;
    if (event.key === "ArrowDown") to = at + 1;
    else if (event.key === "ArrowUp") to = at - 1;
    else if (event.key === "Home") to = 0;
    else if (event.key === "End") to = rows.length - 1;
    else if (event.key === "ArrowRight" && row.kind === "folder" && !row.open) return onChoose(row.path, row.kind);
    else if (event.key === "ArrowLeft" && row.open) return onChoose(row.path, row.kind);
    else return;
    event.preventDefault();
    if (rows[to] === undefined) return;
    list.scrollToIndex(to);
    requestAnimationFrame(() => pane.current?.querySelector<HTMLElement>(`[data-index="${to}"]`)?.focus());
  }

  return (
    <div ref={pane} className="files-tree" role="tree" aria-label="Files in the workspace" onKeyDown={move}>
      <div className="files-tree-rows" style={{ height: list.getTotalSize() }}>
        {list.getVirtualItems().map((item) => {
          const row = rows[item.index];
          if (row === undefined) return null;
          return (
            <button
              key={row.path}
              className="files-tree-row"
              role="treeitem"
              aria-level={row.depth + 1}
              aria-expanded={row.kind === "folder" ? row.open : undefined}
              aria-selected={row.path === chosen}
              data-index={item.index}
              data-path={row.path}
              data-kind={row.kind}
              data-flash={highlighted.has(row.path) || undefined}
              title={row.path}
              style={{ transform: `translateY(${item.start}px)`, paddingLeft: 8 + row.depth * 16 }}
              onClick={() => onChoose(row.path, row.kind)}
            >
              {row.kind === "folder" ? <Icon name="chevron" size={14} /> : <span className="files-tree-indent" />}
              <Icon name={row.kind === "folder" ? "folder" : row.kind === "link" ? "link" : "file"} size={16} />
              <span className="files-tree-name">{row.name}</span>
              {unsaved.has(row.path) && <span className="dot" role="img" aria-label="not saved" />}
            </button>
          );
        })}
      </div>
    </div>
  );
}
