import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/preview",
  title: "Preview",
  icon: "preview",
  key: "p",
  order: 6,
  load: () => import("./PreviewPage"),
};
