import { useEffect, useRef, useState } from "react";
import type { Opened } from "./opened";
import { scaleFor } from "./preview.logic";

// It may do what a page of its own does, except take this tab to another place.
const MAY = "allow-scripts allow-same-origin allow-forms allow-modals allow-popups allow-popups-to-escape-sandbox allow-downloads";

/** The page itself. What is narrower than its room stands in the middle of it; what is wider is drawn smaller. */
export function PreviewFrame({ opened, pixels }: { opened: Opened; pixels: number | null }) {
  const stage = useRef<HTMLDivElement>(null);
  const [room, setRoom] = useState(0);
  const [loaded, setLoaded] = useState(false);
  useEffect(() => {
    if (stage.current === null) return;
    const watcher = new ResizeObserver(([entry]) => setRoom(entry?.contentRect.width ?? 0));
    watcher.observe(stage.current);
    return () => watcher.disconnect();
  }, []);
  const scale = scaleFor(pixels, room);
  return (
    <div ref={stage} className="preview-stage" data-narrow={pixels !== null || undefined} aria-busy={!loaded}>
      {!loaded && <span className="preview-progress" aria-hidden="true" />}
      <div className="preview-device" style={pixels === null ? undefined : { width: pixels * scale }}>
        <iframe
          title={`Preview of port ${opened.port}`}
          src={opened.address}
          sandbox={MAY}
          referrerPolicy="no-referrer"
          style={scale === 1 ? undefined : { width: pixels ?? undefined, height: `${100 / scale}%`, transform: `scale(${scale})` }}
          onLoad={() => setLoaded(true)}
        />
      </div>
    </div>
  );
}
