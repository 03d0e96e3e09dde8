import { AnnotationMode, GlobalWorkerOptions, getDocument, type PDFDocumentProxy } from "pdfjs-dist";
import worker from "pdfjs-dist/build/pdf.worker.min.mjs?url";
import { useEffect, useRef, useState } from "react";

GlobalWorkerOptions.workerSrc = worker;

const MAX_WIDTH = 900;
// Larger pages and images would use too much memory.
const MAX_PIXELS = 32 * 1024 * 1024;

/**
 * A PDF, drawn on canvases by a worker of our own origin. It has no scripts, forms, links or attachments, evaluates no
 * code and fetches nothing.
 */
export default function Pdf({ bytes, name }: { bytes: Uint8Array<ArrayBuffer>; name: string }) {
  const [pdf, setPdf] = useState<PDFDocumentProxy | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    // The worker takes over the bytes, so it gets a copy.
    const task = getDocument({
      data: bytes.slice(),
      enableXfa: false,
      useWasm: false,
      useWorkerFetch: false,
      useSystemFonts: true,
      disableRange: true,
      disableStream: true,
      disableAutoFetch: true,
      stopAtErrors: false,
      maxImageSize: MAX_PIXELS,
      verbosity: 0,
    });
    task.onPassword = () => setProblem("This PDF needs a password. Download it to open it.");
    let current = true;
    task.promise.then(
      (found) => current && setPdf(found),
      (error: unknown) =>
        current &&
        setProblem(
          (held) =>
            held ??
            `This PDF cannot be shown${error instanceof Error && error.name === "InvalidPDFException" ? ": it is damaged" : ""}. Download it to open it.`,
        ),
    );
    return () => {
      current = false;
      void task.destroy();
    };
  }, [bytes]);

  if (problem) return <p className="empty files-note">{problem}</p>;
  if (pdf === null) return <p className="loading quiet">Opening…</p>;
  return (
    <div className="files-pdf" role="document" aria-label={name} tabIndex={0}>
      {Array.from({ length: pdf.numPages }, (_, index) => (
        <PdfPage key={index} pdf={pdf} number={index + 1} />
      ))}
    </div>
  );
}

/** Drawn when it is near the window, and removed when it is far away. */
function PdfPage({ pdf, number }: { pdf: PDFDocumentProxy; number: number }) {
  const place = useRef<HTMLDivElement>(null);
  const [near, setNear] = useState(false);
  const [shape, setShape] = useState(Math.SQRT2);
  const [failed, setFailed] = useState(false);

  useEffect(() => {
    if (place.current === null) return;
    const watcher = new IntersectionObserver(([seen]) => setNear(seen?.isIntersecting ?? false), {
      rootMargin: "600px",
    });
    watcher.observe(place.current);
    return () => watcher.disconnect();
  }, []);

  useEffect(() => {
    const frame = place.current;
    if (!near || frame === null) return;
    let current = true;
    let stop = () => {};
    const canvas = document.createElement("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Page ${number} of ${pdf.numPages}`);
    void (async () => {
      try {
        const page = await pdf.getPage(number);
        const natural = page.getViewport({ scale: 1 });
        const ratio = natural.height / natural.width;
        if (!current || !(ratio > 0)) return;
        setShape(ratio);
        const width = Math.min(frame.clientWidth, MAX_WIDTH) * Math.min(devicePixelRatio, 2);
        const scale = Math.min(width / natural.width, Math.sqrt(MAX_PIXELS / (natural.width * natural.height)));
        const viewport = page.getViewport({ scale });
        canvas.width = Math.floor(viewport.width);
        canvas.height = Math.floor(viewport.height);
        const task = page.render({ canvas, viewport, annotationMode: AnnotationMode.DISABLE });
        stop = () => task.cancel();
        await task.promise;
        if (current) frame.replaceChildren(canvas);
      } catch {
        if (current) setFailed(true);
      }
    })();
    return () => {
      current = false;
      stop();
      frame.replaceChildren();
      canvas.width = canvas.height = 0;
    };
  }, [near, pdf, number]);

  return (
    <figure className="files-pdf-page">
      <div ref={place} style={{ aspectRatio: `1 / ${shape}` }} />
      <figcaption className="quiet">
        {failed ? `Page ${number} cannot be drawn` : `${number} / ${pdf.numPages}`}
      </figcaption>
    </figure>
  );
}
