/** Skills: `home.skills`. */

import type {
  LookAtSkills,
  LookedSource,
  Skill,
  SkillDetails,
  SkillList,
  SkillNames,
  SkillText,
} from "./api.ts";
import type { Link } from "./freehold.ts";

/** What is added was looked at first: `look`, then `add` by the hashes that it has shown. */
export class Skills {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  /** The skills that the owner has added, and how often each was loaded. */
  list(): Promise<SkillList> {
    return this.link.connection.get("/v1/skills");
  }

  /** One skill with its instructions and files. */
  get(name: string): Promise<SkillDetails> {
    return this.link.connection.get(addressOf(name));
  }

  /** One file of a skill. */
  read(name: string, path: string): Promise<SkillText> {
    return this.link.connection.get(`${addressOf(name)}/file`, { path });
  }

  /** The skills of a source, with what was found in them. `remote`: the address of a git repository. */
  look(
    source: LookAtSkills["source"],
    place = "",
    { commit = null }: Pick<LookAtSkills, "commit"> = {},
  ): Promise<LookedSource> {
    return this.link.connection.post("/v1/skills/look", { source, place, commit });
  }

  /** The version that its source has now; none when it is the one that is in use. */
  lookForUpdate(name: string): Promise<LookedSource> {
    return this.link.connection.post(`${addressOf(name)}/look`, {});
  }

  /** Add or replace skills by the hashes of versions that were looked at. Returns their names. */
  async add(digests: readonly string[]): Promise<string[]> {
    return (await this.link.connection.post<SkillNames>("/v1/skills", { digests })).names;
  }

  /** Show a skill to agents, or not. */
  switch(name: string, { on }: { on: boolean }): Promise<Skill> {
    return this.link.connection.patch(addressOf(name), { on });
  }

  async remove(name: string): Promise<void> {
    await this.link.connection.delete<SkillNames>(addressOf(name));
  }
}

function addressOf(skill: string): string {
  return `/v1/skills/${encodeURIComponent(skill)}`;
}
