import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/connect",
  title: "Connect",
  icon: "connect",
  key: "c",
  group: "System",
  order: 19,
  guide: "guides/ssh.html",
  load: () => import("./ConnectPage"),
};
