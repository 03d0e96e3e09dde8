import { useEffect, useState } from "react";

interface Side {
  bytes: Uint8Array<ArrayBuffer> | null;
  label: string;
}

/** Both versions of an image, of types that cannot contain script (see `imageType`). */
export function ImageComparison({ old, now, mime, name }: { old: Side; now: Side; mime: string; name: string }) {
  return (
    <div className="diff-images">
      {[old, now].map((side) => (
        <figure key={side.label}>
          <figcaption>{side.label}</figcaption>
          {side.bytes === null ? (
            <p className="quiet">Does not exist</p>
          ) : (
            <Version bytes={side.bytes} mime={mime} alt={`${name}, ${side.label.toLowerCase()}`} />
          )}
        </figure>
      ))}
    </div>
  );
}

function Version({ bytes, mime, alt }: { bytes: Uint8Array<ArrayBuffer>; mime: string; alt: string }) {
  const [address, setAddress] = useState<string | null>(null);
  const [size, setSize] = useState("");
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([bytes], { type: mime }));
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [bytes, mime]);
  if (address === null) return null;
  return (
    <>
      <img
        src={address}
        alt={alt}
        onLoad={(event) => setSize(`${event.currentTarget.naturalWidth} × ${event.currentTarget.naturalHeight}`)}
      />
      <span className="quiet">{size}</span>
    </>
  );
}
