import { type ReactNode, useEffect, useRef, useState } from "react";

const ARMED_FOR = 8_000;
/** The second press of a double click does not confirm. */
const DOUBLE_CLICK = 350;

interface ConfirmButtonProps {
  label: ReactNode;
  /** What the button says while it waits for the second press. */
  confirmLabel: ReactNode;
  onConfirm: () => void;
  className?: string;
  disabled?: boolean;
  /** For screen readers, where the label alone does not say what it is about. */
  spoken?: string;
  /** Grows with every first press that was made elsewhere, such as in the command palette. */
  remotePresses?: number;
}

/** A button for what cannot be undone. The first press asks for confirmation, the second does it. */
export function ConfirmButton({
  label,
  confirmLabel,
  onConfirm,
  className = "small",
  disabled,
  spoken,
  remotePresses = 0,
}: ConfirmButtonProps) {
  const [armedAt, setArmedAt] = useState<number | null>(null);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (remotePresses === 0 || disabled) return;
    setArmedAt(performance.now());
    button.current?.focus();
  }, [remotePresses, disabled]);
  useEffect(() => {
    if (armedAt === null) return;
    const timer = setTimeout(() => setArmedAt(null), ARMED_FOR);
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
        aria-label={spoken === undefined ? undefined : armed ? `${spoken}: press again to confirm` : spoken}
        onClick={() => {
          if (armedAt === null) return setArmedAt(performance.now());
          if (performance.now() - armedAt < DOUBLE_CLICK) return;
          setArmedAt(null);
          onConfirm();
        }}
        onKeyDown={(event) => {
          if (event.key === "Escape" && armed) {
            event.stopPropagation();
            setArmedAt(null);
          }
        }}
        onBlur={() => setArmedAt(null)}
      >
        {armed ? confirmLabel : label}
      </button>
      <span className="visually-hidden" role="status">
        {armed ? "Press again to confirm, or Escape to cancel" : ""}
      </span>
    </>
  );
}
