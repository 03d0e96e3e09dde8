export interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

export interface Size {
  width: number;
  height: number;
}

export interface Placement {
  side: "above" | "below";
  align: "start" | "end";
  gap: number;
}

/** Pixels between a popup and the edge of the window. */
const MARGIN = 8;

/**
 * Where a popup beside `anchor` goes so that all of it is visible. It uses the other side when the wanted side is too
 * small.
 */
export function popupPosition(
  anchor: Box,
  size: Size,
  window: Size,
  placement: Placement,
): { left: number; top: number; maxHeight: number } {
  const { side, align, gap } = placement;
  const spaceAbove = anchor.top - gap - MARGIN;
  const spaceBelow = window.height - anchor.bottom - gap - MARGIN;
  const wanted = side === "above" ? spaceAbove : spaceBelow;
  const other = side === "above" ? spaceBelow : spaceAbove;
  const isAbove = (side === "above") === (wanted >= size.height || wanted >= other);
  const maxHeight = Math.max(0, isAbove ? spaceAbove : spaceBelow);
  const height = Math.min(size.height, maxHeight);
  const left = align === "start" ? anchor.left : anchor.right - size.width;
  return {
    left: Math.max(MARGIN, Math.min(left, window.width - size.width - MARGIN)),
    top: isAbove ? anchor.top - gap - height : anchor.bottom + gap,
    maxHeight,
  };
}
