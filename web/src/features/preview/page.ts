import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/preview",
  title: "Preview",
  icon: "preview",
  key: "p",
  group: "start",
  order: 5,
  guide: "guides/preview.html",
  load: () => import("./PreviewPage"),
};
