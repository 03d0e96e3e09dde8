import { type FormEvent, useState } from "react";
import type { Memory, MemoryPage as MemoryList, MemoryMatches, MemoryStatus } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { useResource } from "../../data/resource";
import { visibleText } from "../../ui/visibleText";
import { SlotPage } from "../slots/SlotPage";
import { EditDialog } from "./EditDialog";
import { MemoryCard } from "./MemoryCard";
import { concernsMemory, mergePages, namespaceText, searchNote } from "./memory.logic";
import "./memory.css";

const SLOT = "/v1/slots/memory";
const ENTRIES = `${SLOT}/entries`;
const LIVE = { topic: "timeline", durable: true, concerns: concernsMemory, delay: 150 };

/** What agents remember: every memory with its origin, search by meaning, and a way to correct and forget. */
export default function MemoryPage() {
  const [namespace, setNamespace] = useState("");
  const query = namespace === "" ? "" : `&namespace=${encodeURIComponent(namespace)}`;
  const list = useResource<MemoryList>(`${ENTRIES}?limit=50${query}`, LIVE);
  const status = useResource<MemoryStatus>(`${SLOT}/status`, LIVE);
  const [found, setFound] = useState<MemoryMatches | null>(null);
  const [question, setQuestion] = useState("");
  const [failure, setFailure] = useState<Problem | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  const [edited, setEdited] = useState<Memory | null>(null);
  const problem = failure ?? list.problem ?? status.problem;

  function reload() {
    setFailure(null);
    list.reload();
    status.reload();
  }

  async function run(work: () => Promise<unknown>): Promise<boolean> {
    setIsBusy(true);
    try {
      await work();
      setFailure(null);
      return true;
    } catch (error) {
      setFailure(problemOf(error));
      return false;
    } finally {
      setIsBusy(false);
    }
  }

  const search = (asked: string) =>
    run(async () => {
      if (asked === "") return setFound(null);
      const body = { query: asked, limit: 20, namespaces: namespace === "" ? [] : [namespace] };
      setFound(await request<MemoryMatches>(`${SLOT}/search`, { method: "POST", body }));
    });

  const change = (memory: Memory, method: "PATCH" | "DELETE", body?: object) =>
    run(async () => {
      const path = `${ENTRIES}/${encodeURIComponent(memory.id)}`;
      await request(path, body === undefined ? { method } : { method, body });
      setEdited(null);
      list.reload();
      status.reload();
      if (found !== null) await search(question);
    });

  const add = (text: string, pinned: boolean) =>
    run(async () => {
      const body = { text, pinned, namespace: namespace === "" ? "shared" : namespace };
      await request(ENTRIES, { method: "POST", body });
      list.reload();
      status.reload();
    });

  const more = () =>
    run(async () => {
      const cursor = list.value?.cursor;
      if (!cursor) return;
      const older = await request<MemoryList>(`${ENTRIES}?limit=50${query}&cursor=${encodeURIComponent(cursor)}`);
      list.update((held) => ({ memories: mergePages(held.memories, older.memories), cursor: older.cursor }));
    });

  const shown = found === null ? (list.value?.memories ?? []) : found.matches.map((match) => match.memory);
  return (
    <SlotPage slot="memory" className="memory" problem={problem} loaded={list.value !== null} onRetry={reload}>
      <AddForm busy={isBusy} onAdd={add} />
      <SearchForm
        busy={isBusy}
        namespaces={status.value?.namespaces.map((one) => one.name) ?? []}
        namespace={namespace}
        onNamespace={(chosen) => {
          setNamespace(chosen);
          setFound(null);
        }}
        onSearch={(asked) => {
          setQuestion(asked);
          void search(asked);
        }}
      />
      {status.value?.problem && <p className="problem-text">{visibleText(status.value.problem)}</p>}
      {found !== null && searchNote(found) !== null && <p className="quiet">{searchNote(found)}</p>}
      {list.value === null && !problem && (
        <p className="quiet" role="status">
          Loading…
        </p>
      )}
      {list.value !== null && shown.length === 0 && (
        <p className="empty">{found === null ? "Nothing is remembered yet." : "Nothing is remembered about this."}</p>
      )}
      {shown.length > 0 && (
        <p className="quiet memory-note">
          Only what is from you is told to agents as your word. Everything else is quoted to them, with its origin.
        </p>
      )}
      <ul className="memory-list" aria-label="Memories">
        {shown.map((memory) => (
          <MemoryCard
            key={memory.id}
            memory={memory}
            busy={isBusy}
            onEdit={setEdited}
            onPin={(one) => void change(one, "PATCH", { pinned: !one.pinned })}
            onForget={(one) => void change(one, "DELETE")}
          />
        ))}
      </ul>
      {found === null && list.value?.cursor && (
        <button type="button" disabled={isBusy} onClick={() => void more()}>
          Show more
        </button>
      )}
      {edited && (
        <EditDialog
          memory={edited}
          busy={isBusy}
          onCancel={() => setEdited(null)}
          onSave={(memory, text) => void change(memory, "PATCH", { text, version: memory.version })}
        />
      )}
    </SlotPage>
  );
}

function AddForm({ busy, onAdd }: { busy: boolean; onAdd: (text: string, pinned: boolean) => Promise<boolean> }) {
  const [text, setText] = useState("");
  const [isPinned, setIsPinned] = useState(false);

  async function submit(event: FormEvent) {
    event.preventDefault();
    if (text.trim() !== "" && (await onAdd(text.trim(), isPinned))) {
      setText("");
      setIsPinned(false);
    }
  }

  return (
    <form className="memory-form" onSubmit={(event) => void submit(event)}>
      <input
        aria-label="New memory"
        placeholder="Something to remember"
        maxLength={8000}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <label className="radio">
        <input type="checkbox" checked={isPinned} onChange={(event) => setIsPinned(event.target.checked)} />
        For every session
      </label>
      <button type="submit" className="primary" disabled={busy || text.trim() === ""}>
        Remember
      </button>
    </form>
  );
}

interface SearchFormProps {
  busy: boolean;
  namespaces: readonly string[];
  namespace: string;
  onNamespace: (chosen: string) => void;
  onSearch: (asked: string) => void;
}

function SearchForm({ busy, namespaces, namespace, onNamespace, onSearch }: SearchFormProps) {
  const [asked, setAsked] = useState("");

  function submit(event: FormEvent) {
    event.preventDefault();
    onSearch(asked.trim());
  }

  return (
    <search>
      <form className="memory-form" onSubmit={submit}>
        <input
          type="search"
          aria-label="Search memories"
          placeholder="Ask, or type a name"
          maxLength={1000}
          value={asked}
          onChange={(event) => {
            setAsked(event.target.value);
            if (event.target.value === "") onSearch("");
          }}
        />
        <select
          aria-label="Namespace"
          value={namespace}
          onChange={(event) => {
            setAsked("");
            onNamespace(event.target.value);
          }}
        >
          <option value="">All</option>
          {namespaces.map((name) => (
            <option key={name} value={name}>
              {namespaceText(name)}
            </option>
          ))}
        </select>
        <button type="submit" disabled={busy}>
          Search
        </button>
      </form>
    </search>
  );
}
