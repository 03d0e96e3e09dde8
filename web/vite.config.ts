import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { groupOf, preload } from "./firstVisit.ts";
import { translations } from "./language/messages.mjs";

const START = "/src/app/start.tsx";
const START_PAGE = "/features/sessions/SessionsPage.tsx";
/** Without its Markdown parser. It is not part of the page, whose list of sessions does not wait for it. */
const TRANSCRIPT = "/features/sessions/conversation/Transcript.tsx";
const CLIENT = new URL("../clients/typescript/src/", import.meta.url).pathname;

export default defineConfig({
  // Tests see the sources as they are.
  plugins: [...(process.env.VITEST ? [] : [translations(), preload([START], [START_PAGE, TRANSCRIPT])]), react()],
  // The page uses the sources of the TypeScript client. tsconfig.json says the same.
  resolve: { alias: [{ find: /^freehold-client\/(.*)$/, replacement: `${CLIENT}$1.ts` }] },
  server: { fs: { allow: [".."] } },
  build: {
    outDir: "dist",
    // The gateway's content policy allows no data: scripts and no inline ones; keep every asset a file.
    assetsInlineLimit: 0,
    sourcemap: false,
    rolldownOptions: {
      output: {
        // What every page needs is in few files: the gateway counts the requests of those who have not signed in yet.
        codeSplitting: {
          groups: [
            { name: "react", test: /node_modules\/(react|react-dom|scheduler)\// },
            groupOf("/src/main.ts", "client"),
            groupOf(START, "base"),
            groupOf(START_PAGE, "shared"),
            groupOf(TRANSCRIPT, "conversation"),
          ],
        },
      },
    },
  },
});
