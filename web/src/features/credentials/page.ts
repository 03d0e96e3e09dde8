import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/credentials",
  title: "Credentials",
  icon: "key",
  key: "j",
  group: "System",
  order: 18.5,
  guide: "guides/credentials.html",
  load: () => import("./CredentialsPage"),
};
