export interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

export interface Room {
  width: number;
  height: number;
}

const EDGE = 8;

/** Where something that hangs on `anchor` goes so that all of it is seen; the other side when the wanted one is too small. */
export function placeBeside(anchor: Box, size: Room, window: Room, how: { side: "above" | "below"; align: "start" | "end"; gap: number }): { left: number; top: number; most: number } {
  const above = anchor.top - how.gap - EDGE;
  const below = window.height - anchor.bottom - how.gap - EDGE;
  const wanted = how.side === "above" ? above : below;
  const other = how.side === "above" ? below : above;
  const goesAbove = (how.side === "above") === (wanted >= size.height || wanted >= other);
  const most = Math.max(0, goesAbove ? above : below);
  const height = Math.min(size.height, most);
  const left = how.align === "start" ? anchor.left : anchor.right - size.width;
  return {
    left: Math.max(EDGE, Math.min(left, window.width - size.width - EDGE)),
    top: goesAbove ? anchor.top - how.gap - height : anchor.bottom + how.gap,
    most,
  };
}
