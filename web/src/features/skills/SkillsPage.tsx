import { useState } from "react";
import type { LookAtSkills, LookedSkill, LookedSource, Skill, SkillList } from "../../client/api";
import { type Problem, post, problemOf, request } from "../../client/http";
import { useResource } from "../../data/resource";
import { Notice } from "../../ui/Notice";
import { AddSkills } from "./AddSkills";
import { LookedSkills } from "./LookedSkills";
import { SkillCard } from "./SkillCard";
import { concernsSkills } from "./skills.logic";
import "./skills.css";

const SKILLS = "/v1/skills";
const LIVE = { topic: "timeline", durable: true, concerns: concernsSkills, delay: 150 };
const pathOf = (skill: Skill) => `${SKILLS}/${encodeURIComponent(skill.name)}`;

/** The skills that agents are shown: what each says and runs, who uses it, and where more come from. */
export default function SkillsPage() {
  const list = useResource<SkillList>(SKILLS, LIVE);
  const [looked, setLooked] = useState<LookedSource | null>(null);
  const [failure, setFailure] = useState<Problem | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  const problem = failure ?? list.problem;

  async function run(work: () => Promise<unknown>) {
    setIsBusy(true);
    try {
      await work();
      setFailure(null);
    } catch (error) {
      setFailure(problemOf(error));
    } finally {
      setIsBusy(false);
      list.reload();
    }
  }

  const look = (asked: LookAtSkills) =>
    run(async () => setLooked(await request<LookedSource>(`${SKILLS}/look`, { method: "POST", body: asked })));
  const upload = (file: File) => run(async () => setLooked(await post<LookedSource>(`${SKILLS}/look/archive`, file)));
  const update = (skill: Skill) =>
    run(async () => setLooked(await request<LookedSource>(`${pathOf(skill)}/look`, { method: "POST" })));
  const add = (chosen: readonly LookedSkill[]) =>
    run(async () => {
      const digests = chosen.map((one) => one.content.digest);
      await request(SKILLS, { method: "POST", body: { digests } });
      setLooked((held) => held && { ...held, skills: held.skills.map((one) => markAdded(one, digests)) });
    });
  const change = (skill: Skill, method: "PATCH" | "DELETE") =>
    run(() => request(pathOf(skill), method === "PATCH" ? { method, body: { on: !skill.on } } : { method }));

  const skills = list.value?.skills ?? [];
  return (
    <div className="column skills">
      <header className="head">
        <h1>Skills</h1>
        <p className="quiet">
          Instructions and scripts that agents load when they need them. Agents cannot change them.
        </p>
      </header>
      {problem && <Notice problem={problem} action={{ label: "Try again", run: () => void run(async () => {}) }} />}
      {list.value?.enabled === false && (
        <p className="problem-text">Agents are shown no skills: [skills] enabled is false in freehold.toml.</p>
      )}
      <AddSkills busy={isBusy} onLook={(asked) => void look(asked)} onUpload={(file) => void upload(file)} />
      {looked && (
        <LookedSkills
          looked={looked}
          busy={isBusy}
          onAdd={(chosen) => void add(chosen)}
          onClose={() => setLooked(null)}
        />
      )}
      {list.value === null && !problem && (
        <p className="quiet" role="status">
          Loading…
        </p>
      )}
      {list.value !== null && skills.length === 0 && <p className="empty">No skill is in use yet.</p>}
      <ul className="skills-list" aria-label="Skills in use">
        {skills.map((skill) => (
          <SkillCard
            key={`${skill.name} ${skill.digest}`}
            skill={skill}
            busy={isBusy}
            onSwitch={(one) => void change(one, "PATCH")}
            onUpdate={(one) => void update(one)}
            onRemove={(one) => void change(one, "DELETE")}
          />
        ))}
      </ul>
    </div>
  );
}

function markAdded(looked: LookedSkill, digests: readonly string[]): LookedSkill {
  const { digest } = looked.content;
  return digests.includes(digest) ? { ...looked, in_use: digest, changes: [] } : looked;
}
