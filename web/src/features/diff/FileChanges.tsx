import type { Ref } from "react";
import type { ComparedFile, HistoryComparison } from "../../client/api";
import { later } from "../../ui/later";
import { bytes as sizeWords } from "../../ui/moments";
import { Notice } from "../../ui/Notice";
import { imageType } from "../files/content.logic";
import { fileAt, textOf, useContents } from "./contents";
import { hasText, type Comment, type Spot } from "./diff.logic";
import { Pictures } from "./Pictures";
import { Unified, type Stepper } from "./Unified";

const SideBySide = later(() => import("./SideBySide"), "Opening…");

interface FileChangesProps {
  file: ComparedFile;
  comparison: HistoryComparison;
  split: boolean;
  comments: readonly Comment[];
  onComment: (spot: Spot) => void;
  ref: Ref<Stepper>;
}

/** One file's changes in the form that suits it: text in one or two columns, images beside each other, else words. */
export function FileChanges({ file, comparison, split, comments, onComment, ref }: FileChangesProps) {
  const old = file.word === "added" ? null : (comparison.old?.id ?? null);
  const now = file.word === "removed" ? null : comparison.new.id;
  const mime = imageType(file.path);
  const isPicture = mime !== null && file.binary;
  const beside = split && hasText(file);
  const { contents, problem } = useContents(file.path, old, now, isPicture || beside);

  if (problem) return <Notice problem={problem} />;
  if (isPicture) {
    if (contents === null) return <p className="loading quiet">Reading…</p>;
    if (!contents.cut) return <Pictures mime={mime} name={file.path} old={{ bytes: contents.old, label: "Before" }} now={{ bytes: contents.now, label: "After" }} />;
  }
  if (!hasText(file)) return <p className="empty diff-note">{noteOf(file)}</p>;
  if (beside && contents !== null && !contents.cut) {
    return (
      <SideBySide ref={ref} path={file.path} before={textOf(contents.old)} after={textOf(contents.now)} comments={comments} onComment={onComment} />
    );
  }
  if (beside && contents === null) return <p className="loading quiet">Reading…</p>;
  const readWhole = () => fileAt(now ?? old, file.path).then((found) => (found === null || found.cut ? null : textOf(found.bytes)), () => null);
  return <Unified key={file.path} ref={ref} file={file} comments={comments} onComment={onComment} readWhole={readWhole} />;
}

function noteOf(file: ComparedFile): string {
  const size = (count: number | null) => (count === null ? "nothing" : sizeWords(count));
  if (file.binary) return `${file.note.startsWith("too large") ? "Too large to show" : "Not text"}: ${size(file.old_size)} → ${size(file.new_size)}.`;
  if (file.note) return `${file.note[0]?.toUpperCase()}${file.note.slice(1)}.`;
  if (file.old_mode !== file.new_mode && file.old_mode !== null && file.new_mode !== null)
    return `Only the permissions changed: ${(file.old_mode & 0o7777).toString(8)} → ${(file.new_mode & 0o7777).toString(8)}.`;
  return file.word === "changed" ? "Only the time changed." : "An empty file.";
}
