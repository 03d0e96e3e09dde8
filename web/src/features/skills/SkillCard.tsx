import { useState } from "react";
import type { Skill, SkillDetails } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { ConfirmButton } from "../../ui/ConfirmButton";
import { formatDateTime, secondsOf } from "../../ui/format";
import { Notice } from "../../ui/Notice";
import { visibleText } from "../../ui/visibleText";
import { SkillContentView } from "./SkillContentView";
import { sourceText, useText } from "./skills.logic";

interface SkillCardProps {
  skill: Skill;
  busy: boolean;
  onSwitch: (skill: Skill) => void;
  onUpdate: (skill: Skill) => void;
  onRemove: (skill: Skill) => void;
}

/** One skill in use: what it is for, where it is from, who has loaded it, and what can be done with it. */
export function SkillCard({ skill, busy, onSwitch, onUpdate, onRemove }: SkillCardProps) {
  const [details, setDetails] = useState<SkillDetails | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);

  async function toggle() {
    if (details !== null) return setDetails(null);
    try {
      setDetails(await request<SkillDetails>(`/v1/skills/${encodeURIComponent(skill.name)}`));
      setProblem(null);
    } catch (error) {
      setProblem(problemOf(error));
    }
  }

  return (
    <li className="card">
      <h2 className="skills-name">{skill.name}</h2>
      <p className="skills-text" dir="auto">
        {visibleText(skill.description)}
      </p>
      <p className="quiet skills-facts">
        {!skill.on && <span className="chip">off</span>}
        <span>{visibleText(sourceText(skill.source))}</span>
        <span>version {skill.digest.slice(0, 12)}</span>
        <time dateTime={skill.added}>{formatDateTime(secondsOf(skill.added))}</time>
        <span>{visibleText(useText(skill))}</span>
      </p>
      <div className="skills-actions">
        <button
          type="button"
          className="small"
          aria-expanded={details !== null}
          aria-label={`${details === null ? "Show" : "Hide"} ${skill.name}`}
          onClick={() => void toggle()}
        >
          {details === null ? "Show" : "Hide"}
        </button>
        <button
          type="button"
          className="small"
          disabled={busy}
          aria-label={`${skill.on ? "Switch off" : "Switch on"} ${skill.name}`}
          onClick={() => onSwitch(skill)}
        >
          {skill.on ? "Switch off" : "Switch on"}
        </button>
        <button
          type="button"
          className="small"
          disabled={busy}
          aria-label={`Look for an update of ${skill.name}`}
          onClick={() => onUpdate(skill)}
        >
          Look for an update
        </button>
        <ConfirmButton
          label="Remove"
          confirmLabel="Remove?"
          spoken={`Remove ${skill.name}`}
          disabled={busy}
          onConfirm={() => onRemove(skill)}
        />
      </div>
      {problem && <Notice problem={problem} />}
      {details && <SkillContentView content={details.content} />}
    </li>
  );
}
