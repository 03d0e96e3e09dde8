import { formatBytes, formatNumber } from "../../../ui/format";
import { Icon } from "../../../ui/Icon";
import { visibleText } from "../../../ui/visibleText";
import type { ComposerState } from "./useComposer";

/** The images and files that are sent with the message, and those that are still on their way. */
export function Attachments({ composer }: { composer: ComposerState }) {
  const { uploads } = composer;
  return (
    <>
      <AttachmentList composer={composer} />
      <p className="composer-arriving quiet" role="status">
        {uploads.length > 0 &&
          (uploads.length === 1
            ? "You can send the message when the file has arrived."
            : `You can send the message when ${formatNumber(uploads.length)} files have arrived.`)}
      </p>
    </>
  );
}

function AttachmentList({ composer: { images, files, uploads, removeFile } }: { composer: ComposerState }) {
  if (files.length === 0 && images.all.length === 0 && uploads.length === 0) return null;
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
      {uploads.map((one) => (
        <li key={one.id} className="composer-file">
          <Icon name="file" size={14} />
          <span className="path">{visibleText(one.name)}</span>
          <progress
            value={one.sent}
            max={Math.max(one.size, 1)}
            aria-label={`Upload of ${visibleText(one.name)}`}
            title={`${formatBytes(one.sent)} of ${formatBytes(one.size)}`}
          />
          <button
            type="button"
            className="plain-button"
            aria-label={`Cancel ${visibleText(one.name)}`}
            onClick={one.cancel}
          >
            <Icon name="close" size={14} />
          </button>
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
