import { type DragEvent, type FormEvent, type KeyboardEvent, useEffect, useRef, useState } from "react";
import type { Bead, BeadPage, BeadSession } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { useResource } from "../../data/resource";
import { go } from "../../ui/route";
import { useNarrowScreen } from "../../ui/useNarrowScreen";
import { SlotPage } from "../slots/SlotPage";
import { BeadCard } from "./BeadCard";
import { BeadDialog } from "./BeadDialog";
import {
  actionForMove,
  type BoardAction,
  COLUMNS,
  type Column,
  columnBeside,
  columnItems,
  concernsBoard,
  MAX_ITEMS,
} from "./board.logic";
import { CloseDialog } from "./CloseDialog";
import "./beads.css";

const ITEMS = "/v1/slots/beads/items";
const RELOAD_DELAY = 100;

function useColumn(column: Column) {
  return useResource<BeadPage>(`${ITEMS}?status=${column}&limit=${MAX_ITEMS[column]}`, {
    topic: "timeline",
    durable: true,
    concerns: concernsBoard,
    delay: RELOAD_DELAY,
  });
}

/** The board of work items: three columns, kept up to date by the timeline. */
export default function BeadsPage() {
  const lists = { open: useColumn("open"), in_progress: useColumn("in_progress"), closed: useColumn("closed") };
  const [failure, setFailure] = useState<Problem | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  const [dragged, setDragged] = useState<Bead | null>(null);
  const [closing, setClosing] = useState<Bead | null>(null);
  const [opened, setOpened] = useState<Bead | null>(null);
  const isNarrow = useNarrowScreen();
  /** On a narrow screen one column is shown. */
  const [chosen, setChosen] = useState<Column>("open");
  const board = useRef<HTMLDivElement>(null);
  /** The item that keys have moved. It gets the focus where it arrives. */
  const moved = useRef<string | null>(null);
  const titles = new Map(
    Object.values(lists).flatMap((list) => (list.value?.beads ?? []).map((one) => [one.id, one.title])),
  );
  const titleOf = (id: string) => titles.get(id) ?? id;
  const problem = failure ?? lists.open.problem ?? lists.in_progress.problem ?? lists.closed.problem;

  useEffect(() => {
    const title = titleButtons(board.current).find((one) => one.dataset["bead"] === moved.current);
    if (moved.current === null || title === undefined || title === document.activeElement) return;
    if (document.activeElement === document.body) title.focus();
  });

  function reload() {
    setFailure(null);
    for (const list of Object.values(lists)) list.reload();
  }

  async function run(work: () => Promise<void>): Promise<boolean> {
    setIsBusy(true);
    try {
      await work();
      reload();
      return true;
    } catch (error) {
      setFailure(problemOf(error));
      return false;
    } finally {
      setIsBusy(false);
    }
  }

  function act(bead: Bead, action: BoardAction) {
    if (action === "close") {
      setClosing(bead);
      return;
    }
    void run(async () => {
      const reply = await request<unknown>(`${ITEMS}/${encodeURIComponent(bead.id)}/${action}`, {
        method: "POST",
        body: {},
      });
      if (action === "work") go(`/sessions?id=${(reply as BeadSession).session}`);
    });
  }

  /** Arrows go through the items; with Shift they move one to the column beside it. */
  function handleKeys(event: KeyboardEvent) {
    const direction = ARROWS[event.key];
    const here = event.target as HTMLElement;
    const bead = Object.values(lists)
      .flatMap((list) => list.value?.beads ?? [])
      .find((one) => one.id === here.dataset["bead"]);
    if (direction === undefined || bead === undefined) return;
    event.preventDefault();
    if (event.shiftKey && direction.across !== 0) {
      const to = columnBeside(bead.status, direction.across);
      const action = to === undefined ? null : actionForMove(bead, to);
      moved.current = bead.id;
      if (action !== null && !isBusy) act(bead, action);
      return;
    }
    stepFrom(here, board.current, direction);
  }

  const create = (title: string) => run(async () => void (await request(ITEMS, { method: "POST", body: { title } })));
  const close = (bead: Bead, reason: string, evidence: string | null) =>
    run(async () => {
      const body = { reason, evidence };
      await request(`${ITEMS}/${encodeURIComponent(bead.id)}/close`, { method: "POST", body });
      setClosing(null);
    });

  return (
    <SlotPage slot="beads" className="beads" problem={problem} loaded={lists.open.value !== null} onRetry={reload}>
      <NewItem busy={isBusy} onCreate={create} />
      {isNarrow && (
        <div className="tabs beads-tabs" role="group" aria-label="Column">
          {COLUMNS.map(({ column, title }) => (
            <button key={column} type="button" aria-pressed={column === chosen} onClick={() => setChosen(column)}>
              {title} {lists[column].value !== null && countText(lists[column].value)}
            </button>
          ))}
        </div>
      )}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: it hears the keys of the titles, which are buttons */}
      <div className="beads-board" ref={board} onKeyDown={handleKeys}>
        {COLUMNS.filter(({ column }) => !isNarrow || column === chosen).map(({ column, title }) => (
          <BoardColumn
            key={column}
            title={title}
            page={lists[column].value}
            failed={problem !== null}
            column={column}
            accepts={dragged !== null && actionForMove(dragged, column) !== null}
            titleOf={titleOf}
            busy={isBusy}
            onOpen={setOpened}
            onDrag={setDragged}
            onDrop={() => {
              const action = dragged === null ? null : actionForMove(dragged, column);
              if (dragged !== null && action !== null) act(dragged, action);
              setDragged(null);
            }}
            onAct={act}
          />
        ))}
      </div>
      <p className="quiet beads-keys">
        Arrow keys go through the items. <kbd>Shift</kbd> <kbd>←</kbd> and <kbd>Shift</kbd> <kbd>→</kbd> move one.
      </p>
      {opened && <BeadDialog bead={opened} titleOf={titleOf} onChange={reload} onClose={() => setOpened(null)} />}
      {closing && <CloseDialog bead={closing} busy={isBusy} onCancel={() => setClosing(null)} onClose={close} />}
    </SlotPage>
  );
}

function NewItem({ busy, onCreate }: { busy: boolean; onCreate: (title: string) => Promise<boolean> }) {
  const [title, setTitle] = useState("");

  async function submit(event: FormEvent) {
    event.preventDefault();
    if (title.trim() !== "" && (await onCreate(title.trim()))) setTitle("");
  }

  return (
    <form className="beads-new" onSubmit={(event) => void submit(event)}>
      <input
        aria-label="New item"
        placeholder="Describe an item"
        maxLength={500}
        value={title}
        onChange={(event) => setTitle(event.target.value)}
      />
      <button type="submit" className="primary" disabled={busy || title.trim() === ""}>
        Add item
      </button>
    </form>
  );
}

const ARROWS: Record<string, Direction | undefined> = {
  ArrowUp: { along: -1, across: 0 },
  ArrowDown: { along: 1, across: 0 },
  ArrowLeft: { along: 0, across: -1 },
  ArrowRight: { along: 0, across: 1 },
};

/** How many items a column has; with a plus when not all are here. */
const countText = ({ beads, cursor }: BeadPage) => (cursor === null ? `${beads.length}` : `${beads.length}+`);

interface Direction {
  along: -1 | 0 | 1;
  across: -1 | 0 | 1;
}

const titleButtons = (within: Element | null | undefined) => [
  ...(within?.querySelectorAll<HTMLButtonElement>("button[data-bead]") ?? []),
];

/** Moves the focus to the next item of the column, or to the item at the same place of the column beside it. */
function stepFrom(here: HTMLElement, board: HTMLElement | null, { along, across }: Direction) {
  const columns = [...(board?.querySelectorAll("section") ?? [])].map(titleButtons);
  const column = columns.findIndex((titles) => titles.includes(here as HTMLButtonElement));
  const place = columns[column]?.indexOf(here as HTMLButtonElement) ?? 0;
  if (along !== 0) columns[column]?.[place + along]?.focus();
  let next = column + across;
  while (across !== 0 && columns[next]?.length === 0) next += across;
  if (across !== 0) (columns[next]?.[place] ?? columns[next]?.at(-1))?.focus();
}

interface BoardColumnProps {
  title: string;
  column: Column;
  page: BeadPage | null;
  /** Why nothing is shown is told above the board. */
  failed: boolean;
  accepts: boolean;
  titleOf: (id: string) => string;
  busy: boolean;
  onOpen: (bead: Bead) => void;
  onDrag: (bead: Bead | null) => void;
  onDrop: () => void;
  onAct: (bead: Bead, action: BoardAction) => void;
}

function BoardColumn(props: BoardColumnProps) {
  const { title, column, page, failed, accepts, titleOf, busy, onOpen, onDrag, onDrop, onAct } = props;
  const items = page === null ? [] : columnItems(page.beads, column);

  function allowDrop(event: DragEvent) {
    if (accepts) event.preventDefault();
  }

  return (
    <section
      className={`beads-column${accepts ? " beads-accepts" : ""}`}
      aria-labelledby={`board-${column}`}
      onDragOver={allowDrop}
      onDrop={onDrop}
    >
      <h2>
        <span id={`board-${column}`}>{title}</span> {page !== null && <span className="quiet">{countText(page)}</span>}
      </h2>
      {page === null && !failed && (
        <p className="quiet" role="status">
          Loading…
        </p>
      )}
      {page !== null && items.length === 0 && <p className="empty">No items.</p>}
      <ul className="beads-items">
        {items.map((bead) => (
          <BeadCard
            key={bead.id}
            bead={bead}
            parent={bead.parent === null ? null : titleOf(bead.parent)}
            busy={busy}
            onOpen={onOpen}
            onDrag={onDrag}
            onAct={onAct}
          />
        ))}
      </ul>
      {page !== null && page.cursor !== null && (
        <p className="quiet beads-more">
          {column === "closed" ? `The last ${items.length} are shown.` : `The first ${items.length} are shown.`} All of
          them: <code>freehold beads --status {column}</code>
        </p>
      )}
    </section>
  );
}
