/** The worker of the page: its frame without a connection, and push messages. A browser has one for each address. */
export const SERVICE_WORKER = "/sw.js";
