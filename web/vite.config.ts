import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const CLIENT = new URL("../clients/typescript/src/", import.meta.url).pathname;

export default defineConfig({
  plugins: [react()],
  // The page uses the sources of the TypeScript client. tsconfig.json says the same.
  resolve: { alias: [{ find: /^freehold-client\/(.*)$/, replacement: `${CLIENT}$1.ts` }] },
  server: { fs: { allow: [".."] } },
  build: {
    outDir: "dist",
    // The gateway's content policy allows no data: scripts and no inline ones; keep every asset a file.
    assetsInlineLimit: 0,
    sourcemap: false,
  },
});
