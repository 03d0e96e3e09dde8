import type { SkillChange, SkillContent } from "../../client/api";
import { Facts } from "../../ui/Facts";
import { formatBytes } from "../../ui/format";
import { visibleText } from "../../ui/visibleText";
import { findingText } from "./skills.logic";

interface SkillContentViewProps {
  content: SkillContent;
  changes?: readonly SkillChange[];
}

/** Everything in one version of a skill, as it is written: nothing of it is drawn as a page. */
export function SkillContentView({ content, changes = [] }: SkillContentViewProps) {
  const facts: [string, string][] = [
    ["Version", content.digest.slice(0, 16)],
    ["Size", formatBytes(content.size)],
    ...(content.license === null ? [] : [["Licence", visibleText(content.license)] as [string, string]]),
    ...(content.compatibility === null ? [] : [["Needs", visibleText(content.compatibility)] as [string, string]]),
  ];
  return (
    <div className="skills-content">
      <Facts facts={facts} />
      {content.findings.length > 0 && (
        <section aria-label="Findings">
          <h3>Findings</h3>
          <ul>
            {content.findings.map((finding) => (
              <li key={findingText(finding)} className={finding.level === "refused" ? "problem-text" : ""}>
                {visibleText(findingText(finding))}
              </li>
            ))}
          </ul>
        </section>
      )}
      {changes.length > 0 && (
        <section aria-label="Changes">
          <h3>Changes</h3>
          {changes.map((change) => (
            <div key={change.path}>
              <p>
                {change.word}: <code>{visibleText(change.path)}</code>
              </p>
              {change.diff === null ? (
                <p className="quiet">It is not a short text.</p>
              ) : (
                <pre tabIndex={0}>{visibleText(change.diff)}</pre>
              )}
            </div>
          ))}
        </section>
      )}
      <section aria-label="Files">
        <h3>Files</h3>
        <ul className="skills-files">
          {content.files.map((file) => {
            const script = content.scripts.find((one) => one.path === file.path);
            return (
              <li key={file.path}>
                <code>{visibleText(file.path)}</code> <span className="quiet">{formatBytes(file.size)}</span>
                {script && <span className="chip">runs with {visibleText(script.runs)}</span>}
              </li>
            );
          })}
        </ul>
      </section>
      <section aria-label="Instructions">
        <h3>Instructions</h3>
        <pre tabIndex={0}>{visibleText(content.instructions)}</pre>
      </section>
    </div>
  );
}
