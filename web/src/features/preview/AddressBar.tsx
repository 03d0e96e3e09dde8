import { type FormEvent, useState } from "react";
import { readPath } from "./preview.logic";

interface AddressBarProps {
  origin: string;
  path: string;
  onGo: (path: string) => void;
}

/** The address of the preview. The path can be typed. Where the page goes by itself cannot be seen here. */
export function AddressBar({ origin, path, onGo }: AddressBarProps) {
  const [typed, setTyped] = useState(path);
  const to = readPath(typed, origin);

  function open(event: FormEvent) {
    event.preventDefault();
    if (to !== null) onGo(to);
  }

  return (
    <form className="preview-address" onSubmit={open}>
      <span className="preview-origin" title={origin}>
        {origin.replace(/^https?:\/\//, "")}
      </span>
      <input
        aria-label="Path"
        aria-invalid={to === null || undefined}
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
        autoCapitalize="off"
        autoCorrect="off"
        spellCheck={false}
      />
    </form>
  );
}
