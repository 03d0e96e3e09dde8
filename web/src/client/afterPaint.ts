/**
 * Calls this when what was just drawn has been painted, and returns what prevents it. The second frame begins when the
 * first one is painted. A hidden page paints nothing, so there it is called soon.
 */
export function afterPaint(action: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const start = () => {
    timer = setTimeout(action);
  };
  if (document.hidden) {
    start();
    return () => clearTimeout(timer);
  }
  let frame = requestAnimationFrame(() => {
    frame = requestAnimationFrame(start);
  });
  return () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
  };
}
