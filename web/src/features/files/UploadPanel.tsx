import { formatBytes } from "../../ui/format";
import { Icon } from "../../ui/Icon";
import { fractionDone } from "./uploads.logic";
import type { Uploads } from "./useUploads";

const MAX_SHOWN = 20;

/** The uploads that run, and those that failed. */
export function UploadPanel({ uploads: { progress, failures, send, cancel, clearFailures } }: { uploads: Uploads }) {
  if (progress.total === 0 && failures.length === 0) return null;
  const existing = failures.filter((one) => one.exists);
  const percent = Math.round(fractionDone(progress) * 100);
  return (
    <section className="files-uploads" aria-label="Uploads">
      {progress.total > 0 && (
        <>
          <div className="files-uploads-line">
            <span className="files-uploads-name">
              {progress.total === 1 ? progress.current : `${progress.done} of ${progress.total} files`}
            </span>
            <span className="quiet">
              {percent} % of {formatBytes(progress.bytes)}
            </span>
            <button className="plain-button" aria-label="Cancel the upload" onClick={cancel}>
              <Icon name="close" size={14} />
            </button>
          </div>
          <progress value={percent} max={100} aria-label="Upload progress" />
        </>
      )}
      {failures.length > 0 && (
        <div role="alert">
          <ul>
            {failures.slice(0, MAX_SHOWN).map((one) => (
              <li key={one.to}>
                <code className="path">{one.to}</code> <span className="quiet">{one.message}</span>
              </li>
            ))}
          </ul>
          {failures.length > MAX_SHOWN && <p className="quiet">and {failures.length - MAX_SHOWN} more</p>}
          <div className="answers">
            {existing.length > 0 && (
              <button
                className="small"
                onClick={() => {
                  clearFailures();
                  send(existing, { replace: true });
                }}
              >
                {existing.length === 1 ? "Replace the file" : `Replace ${existing.length} files`}
              </button>
            )}
            <button className="small" onClick={clearFailures}>
              Dismiss
            </button>
          </div>
        </div>
      )}
    </section>
  );
}
