import { type ReactNode, useEffect, useRef } from "react";

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ReactNode;
  wide?: boolean;
  bare?: boolean;
}

/** The browser's modal dialog. It keeps the focus inside, closes on Escape and returns the focus. */
export function Dialog({ title, onClose, children, wide, bare }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    return () => shown?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      className={`dialog${wide ? " wide" : ""}${bare ? " bare" : ""}`}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onMouseDown={(event) => {
        if (event.target === dialog.current) onClose();
      }}
    >
      <div className="dialog-body">
        {!bare && <h2>{title}</h2>}
        {children}
      </div>
    </dialog>
  );
}
