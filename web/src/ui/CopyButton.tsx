import { useEffect, useRef, useState } from "react";
import { Icon } from "./Icon";

const SHOWN_FOR = 2_000;

export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const [result, setResult] = useState("");
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  async function copy() {
    try {
      await navigator.clipboard.writeText(text);
      setResult("Copied");
    } catch {
      setResult("Copying is not allowed here");
    }
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setResult(""), SHOWN_FOR);
  }
  return (
    <button type="button" className="copy-button" onClick={() => void copy()} aria-label={result || label}>
      <Icon name={result === "Copied" ? "check" : "copy"} size={14} />
      <span aria-hidden="true">{result || label}</span>
    </button>
  );
}
