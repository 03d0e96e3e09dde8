import { useState } from "react";
import type { LookedSkill, LookedSource } from "../../client/api";
import { countOf } from "../../ui/format";
import { visibleText } from "../../ui/visibleText";
import { SkillContentView } from "./SkillContentView";
import { offerOf } from "./skills.logic";

interface LookedSkillsProps {
  looked: LookedSource;
  busy: boolean;
  onAdd: (chosen: readonly LookedSkill[]) => void;
  onClose: () => void;
}

/** What a source offers. Each version is added only by its own button, after it could be read. */
export function LookedSkills({ looked, busy, onAdd, onClose }: LookedSkillsProps) {
  const offered = looked.skills.filter((one) => offerOf(one).possible);
  const news = offered.filter((one) => one.in_use === null && one.content.findings.length === 0);
  return (
    <section className="card" aria-label="What the source has">
      <div className="skills-actions">
        <p role="status" className="skills-found">
          {looked.skills.length === 0 ? "Nothing new." : `${countOf(looked.skills.length, "skill")} found.`}
        </p>
        {news.length > 1 && (
          <button type="button" className="small" disabled={busy} onClick={() => onAdd(news)}>
            Add all {news.length}
          </button>
        )}
        <button type="button" className="small" onClick={onClose}>
          Close
        </button>
      </div>
      <ul className="skills-list" aria-label="Skills found">
        {looked.skills.map((one) => (
          <LookedItem key={one.content.digest} looked={one} busy={busy} onAdd={() => onAdd([one])} />
        ))}
      </ul>
      {Object.entries(looked.refused).map(([name, words]) => (
        <p key={name} className="problem-text">
          {visibleText(`${name}: ${words}`)}
        </p>
      ))}
    </section>
  );
}

function LookedItem({ looked, busy, onAdd }: { looked: LookedSkill; busy: boolean; onAdd: () => void }) {
  const [isOpen, setIsOpen] = useState(looked.changes.length > 0);
  const offer = offerOf(looked);
  const { content } = looked;
  return (
    <li>
      <h2 className="skills-name">{content.name}</h2>
      <p className="skills-text" dir="auto">
        {visibleText(content.description)}
      </p>
      <div className="skills-actions">
        <button
          type="button"
          className="small"
          aria-expanded={isOpen}
          aria-label={`${isOpen ? "Hide" : "Show"} ${content.name}`}
          onClick={() => setIsOpen(!isOpen)}
        >
          {isOpen ? "Hide" : "Show"}
        </button>
        <button
          type="button"
          className="small primary"
          disabled={busy || !offer.possible}
          aria-label={`${offer.label}: ${content.name}`}
          onClick={onAdd}
        >
          {offer.label}
        </button>
        {content.scripts.length > 0 && <span className="quiet">{countOf(content.scripts.length, "script")}</span>}
        {content.findings.length > 0 && (
          <span className="problem-text">{countOf(content.findings.length, "finding")}</span>
        )}
      </div>
      {isOpen && <SkillContentView content={content} changes={looked.changes} />}
    </li>
  );
}
