import { useEffect, useState } from "react";
import { download } from "../../../client/http";
import { Icon } from "../../../ui/Icon";

interface StoredImageProps {
  address: string;
  title: string;
  type: string;
  className?: string;
}

/** An image of a session, fetched with the owner's key. */
export function StoredImage({ address, title, type, className = "conversation-image" }: StoredImageProps) {
  const [missing, setMissing] = useState(false);
  const [shown, setShown] = useState<string | undefined>(undefined);
  useEffect(() => {
    let blob: string | undefined;
    let current = true;
    download(address).then(
      ({ bytes }) => {
        if (!current) return;
        blob = URL.createObjectURL(new Blob([bytes], { type }));
        setShown(blob);
      },
      () => current && setMissing(true),
    );
    return () => {
      current = false;
      if (blob !== undefined) URL.revokeObjectURL(blob);
    };
  }, [address, type]);
  if (missing)
    return (
      <span className={className} role="img" aria-label={`${title}, ${type}, is no longer stored`}>
        <Icon name="image" size={24} />
      </span>
    );
  return (
    <a href={shown} target="_blank" rel="noopener noreferrer">
      <img className={className} src={shown} alt={title} onError={() => setMissing(true)} />
    </a>
  );
}
