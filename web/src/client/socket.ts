/** The one socket of this page. Knows no React. */

import type { Wire } from "freehold-client/socket";
import { openSocket } from "./signInKey";

export { type ConnectionState, LiveSocket, type TopicListener } from "freehold-client/socket";

export function browserSocket(): Wire {
  return openSocket("/v1/socket") as unknown as Wire;
}
