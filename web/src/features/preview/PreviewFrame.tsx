import { useEffect, useRef, useState } from "react";
import { scaleFor } from "./preview.logic";
import type { OpenPreview } from "./usePreview";

// Everything that a page in its own tab may do, except navigate this tab.
const SANDBOX =
  "allow-scripts allow-same-origin allow-forms allow-modals allow-popups allow-popups-to-escape-sandbox allow-downloads";

/** The page in a frame. A narrower page is centered, a wider one is scaled down. */
export function PreviewFrame({ preview, pixels }: { preview: OpenPreview; pixels: number | null }) {
  const stage = useRef<HTMLDivElement>(null);
  const [space, setSpace] = useState(0);
  const [loaded, setLoaded] = useState(false);
  useEffect(() => {
    if (stage.current === null) return;
    const watcher = new ResizeObserver(([entry]) => setSpace(entry?.contentRect.width ?? 0));
    watcher.observe(stage.current);
    return () => watcher.disconnect();
  }, []);
  const scale = scaleFor(pixels, space);
  return (
    <div ref={stage} className="preview-stage" data-narrow={pixels !== null || undefined} aria-busy={!loaded}>
      {!loaded && <span className="preview-progress" aria-hidden="true" />}
      <div className="preview-device" style={pixels === null ? undefined : { width: pixels * scale }}>
        <iframe
          title={`Preview of port ${preview.port}`}
          src={preview.address}
          sandbox={SANDBOX}
          referrerPolicy="no-referrer"
          style={
            scale === 1
              ? undefined
              : { width: pixels ?? undefined, height: `${100 / scale}%`, transform: `scale(${scale})` }
          }
          onLoad={() => setLoaded(true)}
        />
      </div>
    </div>
  );
}
