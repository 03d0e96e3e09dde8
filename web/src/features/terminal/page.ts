import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/terminal",
  title: "Terminal",
  icon: "terminal",
  key: "t",
  order: 4,
  load: () => import("./TerminalPage"),
};
