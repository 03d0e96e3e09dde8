import { type FormEvent, useState } from "react";
import type { AddMcpServer as AddedServer } from "../../client/api";

/** Writes a server into the manifest. Nothing of it is allowed by this. */
export function AddMcpServer({ busy, onAdd }: { busy: boolean; onAdd: (added: AddedServer) => Promise<boolean> }) {
  const [kind, setKind] = useState<"inside" | "remote">("inside");
  const [name, setName] = useState("");
  const [place, setPlace] = useState("");
  const [key, setKey] = useState("");
  const [signsIn, setSignsIn] = useState(false);

  async function submit(event: FormEvent) {
    event.preventDefault();
    const isInside = kind === "inside";
    const added = {
      name: name.trim(),
      command: isInside ? place.trim() : "",
      url: isInside ? "" : place.trim(),
      key: isInside || signsIn ? "" : key.trim(),
      oauth: !isInside && signsIn,
    };
    if (await onAdd(added)) {
      setName("");
      setPlace("");
      setKey("");
    }
  }

  return (
    <form className="mcp-form" aria-label="Add a server" onSubmit={(event) => void submit(event)}>
      <select
        aria-label="Kind"
        value={kind}
        onChange={(event) => setKind(event.target.value === "inside" ? "inside" : "remote")}
      >
        <option value="inside">A program in the computer</option>
        <option value="remote">A server elsewhere</option>
      </select>
      <input
        aria-label="Name"
        placeholder="Name"
        maxLength={32}
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <input
        aria-label={kind === "inside" ? "Command" : "Address"}
        placeholder={kind === "inside" ? "Command" : "https://mcp.example.org/mcp"}
        maxLength={2000}
        value={place}
        onChange={(event) => setPlace(event.target.value)}
      />
      {kind === "remote" && (
        <label className="radio">
          <input type="checkbox" checked={signsIn} onChange={(event) => setSignsIn(event.target.checked)} />I sign in
          there
        </label>
      )}
      {kind === "remote" && !signsIn && (
        <input
          aria-label="Secret"
          placeholder="Name of its secret, if it needs one"
          maxLength={100}
          value={key}
          onChange={(event) => setKey(event.target.value)}
        />
      )}
      <button type="submit" className="primary" disabled={busy || name.trim() === "" || place.trim() === ""}>
        Add
      </button>
    </form>
  );
}
