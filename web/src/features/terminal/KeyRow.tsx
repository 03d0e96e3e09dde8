import type { SoftKey } from "./terminal.logic";

const KEYS: readonly { key: SoftKey; label: string }[] = [
  { key: "Esc", label: "Esc, Escape" },
  { key: "Tab", label: "Tab" },
  { key: "←", label: "Left" },
  { key: "↓", label: "Down" },
  { key: "↑", label: "Up" },
  { key: "→", label: "Right" },
];

interface KeyRowProps {
  control: boolean;
  onControl: () => void;
  onPress: (key: SoftKey) => void;
  onPaste: () => void;
}

/** The keys that the keyboard of a phone lacks. The focus stays in the terminal, so that the keyboard stays open. */
export function KeyRow({ control, onControl, onPress, onPaste }: KeyRowProps) {
  const keepFocus = (event: { preventDefault: () => void }) => event.preventDefault();
  return (
    <div className="terminal-keys" role="toolbar" aria-label="Keys" onPointerDown={keepFocus}>
      {KEYS.slice(0, 2).map(({ key, label }) => (
        <button key={key} aria-label={label} onClick={() => onPress(key)}>
          {key}
        </button>
      ))}
      <button aria-pressed={control} aria-label="Ctrl, Control" onClick={onControl}>
        Ctrl
      </button>
      {KEYS.slice(2).map(({ key, label }) => (
        <button key={key} aria-label={label} onClick={() => onPress(key)}>
          {key}
        </button>
      ))}
      <button onClick={onPaste}>Paste</button>
    </div>
  );
}
