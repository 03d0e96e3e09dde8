import { useEffect, useRef, useState, type ReactNode } from "react";

const STAYS_ARMED = 8_000;
/** A double click is one wish, not two. */
const TOO_SOON = 350;

interface TwoPressProps {
  label: ReactNode;
  /** What the button says when it waits for the second press. */
  sure: ReactNode;
  onSure: () => void;
  className?: string;
  disabled?: boolean;
  /** For screen readers, where the label alone does not say what it is about. */
  name?: string;
  /** Grows with every first press that was made elsewhere. */
  asked?: number;
}

/** Does what cannot be taken back: the first press asks, the second does it. */
export function TwoPress({ label, sure, onSure, className = "small", disabled, name, asked = 0 }: TwoPressProps) {
  const [armedAt, setArmedAt] = useState<number | null>(null);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (asked === 0 || disabled) return;
    setArmedAt(performance.now());
    button.current?.focus();
  }, [asked, disabled]);
  useEffect(() => {
    if (armedAt === null) return;
    const timer = setTimeout(() => setArmedAt(null), STAYS_ARMED);
    return () => clearTimeout(timer);
  }, [armedAt]);
  const armed = armedAt !== null;
  return (
    <>
      <button
        ref={button}
        type="button"
        className={`${className}${armed ? " armed" : ""}`}
        disabled={disabled}
        aria-label={name === undefined ? undefined : armed ? `${name}: press again to do it` : name}
        onClick={() => {
          if (armedAt === null) return setArmedAt(performance.now());
          if (performance.now() - armedAt < TOO_SOON) return;
          setArmedAt(null);
          onSure();
        }}
        onKeyDown={(event) => {
          if (event.key === "Escape" && armed) {
            event.stopPropagation();
            setArmedAt(null);
          }
        }}
        onBlur={() => setArmedAt(null)}
      >
        {armed ? sure : label}
      </button>
      <span className="unseen" role="status">
        {armed ? "Press again to do it, or Escape" : ""}
      </span>
    </>
  );
}
