import { useEffect, useLayoutEffect, useRef, type ReactNode, type RefObject } from "react";
import { createPortal } from "react-dom";
import { placeBeside } from "./place.logic";

interface FloatingProps {
  anchor: RefObject<HTMLElement | null>;
  role: "menu" | "dialog";
  label: string;
  className: string;
  side: "above" | "below";
  align: "start" | "end";
  onClose: () => void;
  children: ReactNode;
}

/** Something that hangs on a button, above all else on the page. It takes the focus, and gives it back when Esc closes it. */
export function Floating({ anchor, role, label, className, side, align, onClose, children }: FloatingProps) {
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
      const { left, top, most } = placeBeside(anchor.current.getBoundingClientRect(), { width: shown.offsetWidth, height: shown.scrollHeight + 2 }, { width: innerWidth, height: innerHeight }, { side, align, gap: 4 });
      shown.style.left = `${left}px`;
      shown.style.top = `${top}px`;
      shown.style.maxHeight = `${most}px`;
    }
    place();
    shown.querySelector<HTMLElement>("[role=menuitem], select, input")?.focus();
    const outside = (event: Event) => {
      if (event.target instanceof Node && !shown.contains(event.target) && !anchor.current?.contains(event.target)) close.current();
    };
    document.addEventListener("pointerdown", outside, true);
    window.addEventListener("resize", place);
    return () => {
      document.removeEventListener("pointerdown", outside, true);
      window.removeEventListener("resize", place);
    };
  }, [anchor, side, align]);
  return createPortal(
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
        if (event.relatedTarget instanceof Node && !event.currentTarget.contains(event.relatedTarget) && !anchor.current?.contains(event.relatedTarget)) onClose();
      }}
    >
      {children}
    </div>,
    document.body,
  );
}
