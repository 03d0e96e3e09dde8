import { type ReactNode, type RefObject, useEffect, useLayoutEffect, useRef } from "react";
import { createPortal } from "react-dom";
import { popupPosition } from "./popupPosition.logic";

interface PopupProps {
  anchor: RefObject<HTMLElement | null>;
  role: "menu" | "dialog";
  label: string;
  className: string;
  side: "above" | "below";
  align: "start" | "end";
  onClose: () => void;
  children: ReactNode;
}

/** A box beside a button, above everything else. It takes the focus, and returns it when Escape closes it. */
export function Popup({ anchor, role, label, className, side, align, onClose, children }: PopupProps) {
  const box = useRef<HTMLDivElement>(null);
  const close = useRef(onClose);
  useEffect(() => {
    close.current = onClose;
  });
  useLayoutEffect(() => {
    const shown = box.current;
    if (shown === null) return;
    shown.showPopover();
    function place() {
      if (shown === null || anchor.current === null) return;
      shown.style.maxHeight = "";
      const { left, top, maxHeight } = popupPosition(
        anchor.current.getBoundingClientRect(),
        { width: shown.offsetWidth, height: shown.scrollHeight + 2 },
        { width: innerWidth, height: innerHeight },
        { side, align, gap: 4 },
      );
      shown.style.left = `${left}px`;
      shown.style.top = `${top}px`;
      shown.style.maxHeight = `${maxHeight}px`;
    }
    place();
    shown.querySelector<HTMLElement>("[role=menuitem], select, input")?.focus();
    const closeOutside = (event: Event) => {
      if (event.target instanceof Node && !shown.contains(event.target) && !anchor.current?.contains(event.target))
        close.current();
    };
    document.addEventListener("pointerdown", closeOutside, true);
    window.addEventListener("resize", place);
    return () => {
      document.removeEventListener("pointerdown", closeOutside, true);
      window.removeEventListener("resize", place);
    };
  }, [anchor, side, align]);
  return createPortal(
    // biome-ignore lint/a11y/noStaticElementInteractions: its role is a menu or a dialog
    // biome-ignore lint/a11y/useAriaPropsSupportedByRole: its role is a menu or a dialog
    <div
      ref={box}
      popover="manual"
      role={role}
      aria-label={label}
      className={className}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.preventDefault();
        event.stopPropagation();
        onClose();
        anchor.current?.focus();
      }}
      onBlur={(event) => {
        if (
          event.relatedTarget instanceof Node &&
          !event.currentTarget.contains(event.relatedTarget) &&
          !anchor.current?.contains(event.relatedTarget)
        )
          onClose();
      }}
    >
      {children}
    </div>,
    document.body,
  );
}
