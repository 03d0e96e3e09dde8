import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/skills",
  title: "Skills",
  icon: "book",
  key: "i",
  group: "Agents",
  order: 9,
  guide: "guides/skills.html",
  load: () => import("./SkillsPage"),
};
