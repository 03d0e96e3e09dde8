import type { Ref } from "react";
import type { ComparedFile, HistoryComparison } from "../../client/api";
import { formatBytes } from "../../ui/format";
import { lazyComponent } from "../../ui/lazyComponent";
import { Notice } from "../../ui/Notice";
import { hasLongLine, imageType } from "../files/content.logic";
import type { ChangeStepper } from "../files/SideBySide";
import { type Comment, type CommentedLine, hasText } from "./diff.logic";
import { ImageComparison } from "./ImageComparison";
import { UnifiedDiff } from "./UnifiedDiff";
import { decodeText, readFileAt, useFileVersions } from "./useFileVersions";
import { VersionDownloads } from "./VersionDownloads";

const SideBySide = lazyComponent(() => import("../files/SideBySide"), "Opening…");

/** Longer changes are shown in one column, which draws no more than its first lines. */
const MAX_SPLIT = 500_000;

interface FileChangesProps {
  file: ComparedFile;
  comparison: HistoryComparison;
  split: boolean;
  ignoresSpace: boolean;
  comments: readonly Comment[];
  onComment: (line: CommentedLine) => void;
  ref: Ref<ChangeStepper>;
}

/** The changes of one file: text in one or two columns, images beside each other, or a note. */
export function FileChanges({ file, comparison, split, ignoresSpace, comments, onComment, ref }: FileChangesProps) {
  const old = file.word === "added" ? null : (comparison.old?.id ?? null);
  const now = file.word === "removed" ? null : comparison.new.id;
  const mime = imageType(file.path);
  const isImage = mime !== null && file.binary;
  const isSplit = split && hasText(file) && file.text.length < MAX_SPLIT;
  const { versions, problem } = useFileVersions(file.path, old, now, isImage || isSplit);

  if (problem) return <Notice problem={problem} />;
  if (isImage) {
    if (versions === null) return <p className="loading quiet">Loading…</p>;
    if (!versions.cut)
      return (
        <ImageComparison
          mime={mime}
          name={file.path}
          old={{ bytes: versions.old, label: "Before" }}
          now={{ bytes: versions.now, label: "After" }}
        />
      );
  }
  if (!hasText(file))
    return (
      <div className="empty diff-note">
        <p>{noteFor(file)}</p>
        {file.binary && <VersionDownloads file={file} old={old} now={now} />}
      </div>
    );
  if (isSplit && versions !== null && !versions.cut) {
    const [before, after] = [decodeText(versions.old), decodeText(versions.now)];
    if (!hasLongLine(before) && !hasLongLine(after))
      return (
        <SideBySide
          ref={ref}
          path={file.path}
          ignoresSpace={ignoresSpace}
          before={before}
          after={after}
          comments={comments}
          onComment={onComment}
        />
      );
  }
  if (isSplit && versions === null) return <p className="loading quiet">Loading…</p>;
  const readWhole = () =>
    readFileAt(now ?? old, file.path).then(
      (found) => (found === null || found.cut ? null : decodeText(found.bytes)),
      () => null,
    );
  return (
    <UnifiedDiff
      key={file.path}
      ref={ref}
      file={file}
      ignoresSpace={ignoresSpace}
      comments={comments}
      onComment={onComment}
      readWhole={readWhole}
    />
  );
}

function noteFor(file: ComparedFile): string {
  const size = (count: number | null) => (count === null ? "no file" : formatBytes(count));
  if (file.binary)
    return `${file.note.startsWith("too large") ? "Too large to compare here" : "Not a text file"}: ${size(file.old_size)} → ${size(file.new_size)}.`;
  if (file.note) return `${file.note[0]?.toUpperCase()}${file.note.slice(1)}.`;
  if (file.old_mode !== file.new_mode && file.old_mode !== null && file.new_mode !== null)
    return `Only the permissions changed: ${(file.old_mode & 0o7777).toString(8)} → ${(file.new_mode & 0o7777).toString(8)}.`;
  return file.word === "changed" ? "Only the modification time changed." : "The file is empty.";
}
