import { Icon } from "../../ui/Icon";
import { bytes } from "../../ui/moments";
import { share } from "./uploads.logic";
import type { Uploads } from "./uploads";

const MOST_SHOWN = 20;

/** What is on its way up, and what did not get there. */
export function UploadPanel({ uploads: { progress, failures, send, cancel, forget } }: { uploads: Uploads }) {
  if (progress.total === 0 && failures.length === 0) return null;
  const there = failures.filter((one) => one.exists);
  const part = Math.round(share(progress) * 100);
  return (
    <section className="uploads" aria-label="Uploads">
      {progress.total > 0 && (
        <>
          <div className="uploads-line">
            <span className="uploads-name">{progress.total === 1 ? progress.now : `${progress.done} of ${progress.total} files`}</span>
            <span className="quiet">
              {part} % of {bytes(progress.bytes)}
            </span>
            <button className="plain-button" aria-label="Stop uploading" onClick={cancel}>
              <Icon name="close" size={14} />
            </button>
          </div>
          <progress value={part} max={100} aria-label="Upload" />
        </>
      )}
      {failures.length > 0 && (
        <div role="alert">
          <ul>
            {failures.slice(0, MOST_SHOWN).map((one) => (
              <li key={one.to}>
                <code className="path">{one.to}</code> <span className="quiet">{one.message}</span>
              </li>
            ))}
          </ul>
          {failures.length > MOST_SHOWN && <p className="quiet">and {failures.length - MOST_SHOWN} more</p>}
          <div className="replies">
            {there.length > 0 && (
              <button
                className="small"
                onClick={() => {
                  forget();
                  send(there, { replace: true });
                }}
              >
                {there.length === 1 ? "Replace it" : `Replace ${there.length}`}
              </button>
            )}
            <button className="small" onClick={forget}>
              Put away
            </button>
          </div>
        </div>
      )}
    </section>
  );
}
