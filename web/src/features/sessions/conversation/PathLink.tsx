import { filePath, followLink } from "../../../ui/route";
import { visibleText } from "../../../ui/visibleText";
import { workspacePath } from "../../markdown/links.logic";

/** A path in the computer. A path in the workspace is a link to Files. */
export function PathLink({ path }: { path: string }) {
  const file = workspacePath(path);
  if (file === null) return <span className="path">{visibleText(path)}</span>;
  const to = filePath(file);
  return (
    <a className="path" href={to} onClick={(event) => followLink(event, to)}>
      {visibleText(file)}
    </a>
  );
}
