import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/connect",
  title: "Connect",
  icon: "connect",
  key: "c",
  order: 13,
  load: () => import("./ConnectPage"),
};
