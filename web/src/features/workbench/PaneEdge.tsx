import { type KeyboardEvent, type PointerEvent, type RefObject, useRef } from "react";
import { fitShare, shareAfterKey, shareLimits } from "./workbench.logic";

interface PaneEdgeProps {
  frame: RefObject<HTMLDivElement | null>;
  share: number;
  onResize: (share: number, options?: { draft?: boolean }) => void;
  onCollapse: () => void;
}

const percent = (share: number) => Math.round(share * 100);

/** The edge between conversation and pane. It is moved by pointer or by arrow keys; Enter closes the pane. */
export function PaneEdge({ frame, share, onResize, onCollapse }: PaneEdgeProps) {
  const last = useRef(share);
  const width = frame.current?.clientWidth ?? innerWidth;
  const { min, max } = shareLimits(width);

  function move(event: PointerEvent<HTMLButtonElement>) {
    if (!event.currentTarget.hasPointerCapture(event.pointerId)) return;
    const box = frame.current?.getBoundingClientRect();
    if (box === undefined) return;
    last.current = fitShare((box.right - event.clientX) / box.width, box.width);
    onResize(last.current, { draft: true });
  }
  function press(event: KeyboardEvent) {
    if (event.key === "Enter") {
      event.preventDefault();
      onCollapse();
      return;
    }
    const next = shareAfterKey(event.key, share, width);
    if (next === null) return;
    event.preventDefault();
    onResize(next);
  }
  return (
    <button
      type="button"
      className="workbench-edge"
      role="slider"
      aria-label="Width of the pane"
      aria-valuenow={percent(share)}
      aria-valuemin={percent(min)}
      aria-valuemax={percent(max)}
      aria-valuetext={`${percent(share)} percent`}
      title="Drag to resize. Enter closes the pane."
      onPointerDown={(event) => {
        last.current = share;
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={move}
      onPointerUp={() => onResize(last.current)}
      onKeyDown={press}
    />
  );
}
