import { type DragEvent, type FormEvent, useState } from "react";
import type { Bead, BeadPage, BeadSession } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { useResource } from "../../data/resource";
import { Notice } from "../../ui/Notice";
import { go } from "../../ui/route";
import { BeadCard } from "./BeadCard";
import { BeadDialog } from "./BeadDialog";
import { actionForMove, type BoardAction, COLUMNS, type Column, columnItems, concernsBoard } from "./board.logic";
import { CloseDialog } from "./CloseDialog";
import "./beads.css";

const ITEMS = "/v1/slots/beads/items";
const LIMIT = 200;
const RELOAD_DELAY = 100;

function useColumn(column: Column) {
  return useResource<BeadPage>(`${ITEMS}?status=${column}&limit=${LIMIT}`, {
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
  const titles = new Map(
    Object.values(lists).flatMap((list) => (list.value?.beads ?? []).map((one) => [one.id, one.title])),
  );
  const titleOf = (id: string) => titles.get(id) ?? id;
  const problem = failure ?? lists.open.problem ?? lists.in_progress.problem ?? lists.closed.problem;
  const isOff = problem?.code === "beads.disabled";

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

  const create = (title: string) => run(async () => void (await request(ITEMS, { method: "POST", body: { title } })));
  const close = (bead: Bead, reason: string, evidence: string | null) =>
    run(async () => {
      const body = { reason, evidence };
      await request(`${ITEMS}/${encodeURIComponent(bead.id)}/close`, { method: "POST", body });
      setClosing(null);
    });

  return (
    <div className="column beads">
      <header className="head">
        <h1>Work</h1>
        <p className="quiet">Items for you and your agents.</p>
      </header>
      {problem && !isOff && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
      {isOff && (
        <p className="empty">
          Work items are off. To turn them on, set <code>slots.beads = "local"</code> in freehold.toml and restart
          Freehold.
        </p>
      )}
      {!isOff && <NewItem busy={isBusy} onCreate={create} />}
      {!isOff && (
        <div className="beads-board">
          {COLUMNS.map(({ column, title }) => (
            <BoardColumn
              key={column}
              title={title}
              page={lists[column].value}
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
      )}
      {opened && <BeadDialog bead={opened} titleOf={titleOf} onClose={() => setOpened(null)} />}
      {closing && <CloseDialog bead={closing} busy={isBusy} onCancel={() => setClosing(null)} onClose={close} />}
    </div>
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

interface BoardColumnProps {
  title: string;
  column: Column;
  page: BeadPage | null;
  accepts: boolean;
  titleOf: (id: string) => string;
  busy: boolean;
  onOpen: (bead: Bead) => void;
  onDrag: (bead: Bead | null) => void;
  onDrop: () => void;
  onAct: (bead: Bead, action: BoardAction) => void;
}

function BoardColumn(props: BoardColumnProps) {
  const { title, column, page, accepts, titleOf, busy, onOpen, onDrag, onDrop, onAct } = props;
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
        <span id={`board-${column}`}>{title}</span> {page !== null && <span className="quiet">{items.length}</span>}
      </h2>
      {page === null && (
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
      {page !== null && page.beads.length > items.length && (
        <p className="quiet">Older items: freehold beads --status {column}</p>
      )}
      {page !== null && page.cursor !== null && <p className="quiet">The first {LIMIT} items are shown.</p>}
    </section>
  );
}
