import type { Virtualizer } from "@tanstack/react-virtual";
import { type RefObject, useCallback, useEffect, useRef, useState } from "react";

/** Pixels from the end that count as the end. */
export const NEAR_END = 80;

export interface ScrollState {
  isAtEnd: boolean;
  /** Whether events arrived since the owner left the end. */
  hasNew: boolean;
  toEnd: () => void;
  onScroll: () => void;
  /** The last event before the owner's last prompt; Infinity before the first prompt. */
  promptSeq: number;
}

/** Follows the end of a list while the owner is there, and goes there when they send a prompt. */
export function useScrollToEnd(
  pane: RefObject<HTMLDivElement | null>,
  list: Virtualizer<HTMLDivElement, Element>,
  lastSeq: number,
  promptsSent: number,
): ScrollState {
  const [isAtEnd, setIsAtEnd] = useState(true);
  const [leftAt, setLeftAt] = useState(0);
  const [promptSeq, setPromptSeq] = useState(Number.POSITIVE_INFINITY);
  const isFollowing = useRef(true);
  const scrollTop = useRef(0);
  const latestSeq = useRef(lastSeq);
  useEffect(() => {
    latestSeq.current = lastSeq;
  });

  const toEnd = useCallback(() => {
    isFollowing.current = true;
    setIsAtEnd(true);
    list.scrollToEnd();
  }, [list]);

  useEffect(() => {
    if (promptsSent === 0) return;
    toEnd();
    setPromptSeq(latestSeq.current);
  }, [promptsSent, toEnd]);

  // The pane changes its height with the composer below it.
  useEffect(() => {
    const shown = pane.current;
    if (shown === null) return;
    const observer = new ResizeObserver(() => {
      if (isFollowing.current) list.scrollToEnd();
    });
    observer.observe(shown);
    return () => observer.disconnect();
  }, [pane, list]);

  const onScroll = useCallback(() => {
    const shown = pane.current;
    if (shown === null) return;
    const isNear = shown.scrollHeight - shown.scrollTop - shown.clientHeight < NEAR_END;
    // Only scrolling up leaves the end. Text that grows faster than it is followed does not.
    const isLeaving = !isNear && shown.scrollTop < scrollTop.current;
    scrollTop.current = shown.scrollTop;
    if (!isNear && !isLeaving) return;
    if (isNear || isFollowing.current) setLeftAt(lastSeq);
    isFollowing.current = isNear;
    setIsAtEnd(isNear);
  }, [pane, lastSeq]);

  return { isAtEnd, hasNew: lastSeq > leftAt, toEnd, onScroll, promptSeq };
}
