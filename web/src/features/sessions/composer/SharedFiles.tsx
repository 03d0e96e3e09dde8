import { formatBytes, formatNumber } from "../../../ui/format";
import { visibleText } from "../../../ui/visibleText";

interface SharedFilesProps {
  files: readonly File[];
  onAnswer: (isWanted: boolean) => void;
}

/** Files that another app shared. They are put into the workspace only when the owner adds them. */
export function SharedFiles({ files, onAnswer }: SharedFilesProps) {
  const [first] = files;
  if (first === undefined) return null;
  const size = formatBytes(files.reduce((sum, one) => sum + one.size, 0));
  return (
    <div className="composer-note" role="status">
      <p>
        {files.length === 1
          ? `Another app shared ${visibleText(first.name)} (${size}).`
          : `Another app shared ${formatNumber(files.length)} files (${size}).`}
      </p>
      <button type="button" className="small" onClick={() => onAnswer(false)}>
        Discard
      </button>
      <button type="button" className="small primary" onClick={() => onAnswer(true)}>
        Add to the message
      </button>
    </div>
  );
}
