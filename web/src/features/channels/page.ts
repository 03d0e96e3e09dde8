import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/channels",
  title: "Channels",
  icon: "bell",
  key: "l",
  order: 11.5,
  load: () => import("./ChannelsPage"),
};
