import { Icon } from "../../../ui/Icon";
import { visibleText } from "../../../ui/visibleText";
import type { ComposerState } from "./useComposer";

/** The images and files that are sent with the message. */
export function Attachments({ composer: { images, files, removeFile } }: { composer: ComposerState }) {
  if (files.length === 0 && images.all.length === 0) return null;
  return (
    <ul className="composer-attachments" aria-label="Attachments">
      {images.all.map((image) => (
        <li key={image.id} className="composer-image">
          <img src={image.url} alt={image.name} />
          <RemoveButton name={image.name} onClick={() => images.remove(image.id)} />
        </li>
      ))}
      {files.map((path) => (
        <li key={path} className="composer-file">
          <Icon name="file" size={14} />
          <span className="path">{visibleText(path)}</span>
          <RemoveButton name={path} onClick={() => removeFile(path)} />
        </li>
      ))}
    </ul>
  );
}

function RemoveButton({ name, onClick }: { name: string; onClick: () => void }) {
  return (
    <button type="button" className="plain-button" aria-label={`Remove ${visibleText(name)}`} onClick={onClick}>
      <Icon name="close" size={14} />
    </button>
  );
}
