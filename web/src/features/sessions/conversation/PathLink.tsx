import { shortLine } from "../../../ui/plainText.logic";
import { filePath, followLink } from "../../../ui/route";
import { visibleText } from "../../../ui/visibleText";
import { workspacePath } from "../../markdown/links.logic";
import { useShowBeside } from "../../workbench/workbenchContext";

const MAX_PATH = 500;

/** A path in the computer. A path in the workspace is a link to Files, beside the conversation where there is space. */
export function PathLink({ path }: { path: string }) {
  const show = useShowBeside();
  const file = workspacePath(path);
  if (file === null) return <span className="path">{visibleText(shortLine(path, MAX_PATH))}</span>;
  const to = filePath(file);
  return (
    <a className="path" href={to} onClick={(event) => followLink(event, to, show)}>
      {visibleText(shortLine(file, MAX_PATH))}
    </a>
  );
}
