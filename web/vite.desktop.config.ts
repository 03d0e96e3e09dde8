import { defineConfig } from "vite";

/** The viewer of the desktop: three files, which the gateway serves on the origin of the desktop and nowhere else. */
export default defineConfig({
  root: new URL("./desktop/", import.meta.url).pathname,
  base: "./",
  build: {
    outDir: "../dist/desktop",
    emptyOutDir: true,
    target: "es2023",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      output: { entryFileNames: "viewer.js", assetFileNames: "viewer[extname]", codeSplitting: false },
    },
  },
});
