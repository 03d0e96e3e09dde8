import { type TouchEvent, useRef } from "react";

const MIN_WAY = 60;
const MAX_SLOPE = 0.5;

interface Swipe {
  onTouchStart: (event: TouchEvent) => void;
  onTouchEnd: (event: TouchEvent) => void;
}

/** Calls with 1 for a swipe to the left (the next) and -1 for one to the right. A finger that moves up or down is none. */
export function useSwipe(onSwipe: (step: 1 | -1) => void): Swipe {
  const begin = useRef<{ x: number; y: number } | null>(null);
  return {
    onTouchStart: ({ touches }) => {
      const touch = touches[0];
      begin.current = touch === undefined || touches.length > 1 ? null : { x: touch.clientX, y: touch.clientY };
    },
    onTouchEnd: ({ changedTouches }) => {
      const [from, touch] = [begin.current, changedTouches[0]];
      begin.current = null;
      if (from === null || touch === undefined) return;
      const [x, y] = [touch.clientX - from.x, touch.clientY - from.y];
      if (Math.abs(x) >= MIN_WAY && Math.abs(y) <= Math.abs(x) * MAX_SLOPE) onSwipe(x < 0 ? 1 : -1);
    },
  };
}
