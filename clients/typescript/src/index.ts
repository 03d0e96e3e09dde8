export type * from "./api.ts";
export { type Problem, RequestFailed } from "./connection.ts";
export { Freehold, type FreeholdOptions } from "./freehold.ts";
export type { SessionUpdate } from "./sessions.ts";
export { Session } from "./sessions.ts";
