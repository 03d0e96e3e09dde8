import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/terminal",
  title: "Terminal",
  icon: "terminal",
  key: "t",
  group: "start",
  order: 4,
  guide: "guides/control-center.html",
  load: () => import("./TerminalPage"),
};
