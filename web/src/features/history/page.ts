import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/history",
  title: "History",
  icon: "history",
  key: "h",
  group: "start",
  order: 2,
  guide: "guides/history.html",
  load: () => import("./HistoryPage"),
};
