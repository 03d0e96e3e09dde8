/** The shapes of the API, from the client that this page uses. */
export type * from "freehold-client/api";
