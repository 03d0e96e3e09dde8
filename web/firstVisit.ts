/**
 * What a browser without a cache loads, in few files and early. A request costs a round trip, and before HTTP/2 a browser
 * makes six at once.
 */
import type { Plugin, Rolldown } from "vite";

interface Modules {
  getModuleInfo: (id: string) => { importers: string[] } | null;
}

/** One chunk for what a module imports, directly or through others but not by `import()`, and another one imports too. */
export function groupOf(root: string, name: string): Rolldown.CodeSplittingGroup {
  const known = new Map<string, boolean>();
  const isImported = (id: string, modules: Modules): boolean => {
    if (id.endsWith(root)) return true;
    const found = known.get(id);
    if (found !== undefined) return found;
    // A circle of imports leads nowhere.
    known.set(id, false);
    const result = (modules.getModuleInfo(id)?.importers ?? []).some((importer) => isImported(importer, modules));
    known.set(id, result);
    return result;
  };
  return { debugName: name, name: (id, modules) => (isImported(id, modules) ? name : null), minShareCount: 2 };
}

/** The chunks that a module imports, and its own. The largest comes first: it takes longest. */
function chunksOf(module: string, bundle: Rolldown.OutputBundle): Rolldown.OutputChunk[] {
  const chunks = Object.values(bundle).filter((one) => one.type === "chunk");
  const page = chunks.find((one) => one.facadeModuleId?.endsWith(module));
  if (page === undefined) throw new Error(`No chunk has ${module}`);
  const found = new Set([page]);
  for (const chunk of found)
    for (const other of chunks) if (chunk.imports.includes(other.fileName)) found.add(other);
  return [...found].sort((one, other) => other.code.length - one.code.length);
}

/** Adds links to index.html that load the code of these modules at once. What has time comes after it in the queue. */
export function preload(first: readonly string[], later: readonly string[]): Plugin {
  return {
    name: "preload",
    transformIndexHtml: {
      order: "post",
      handler(html, { bundle }) {
        if (bundle === undefined) return undefined;
        const linked = new Set<string>();
        const linksOf = (module: string, priority: "high" | "low") => {
          const chunks = chunksOf(module, bundle);
          const sheets = chunks.flatMap((chunk) => [...(chunk.viteMetadata?.importedCss ?? [])]);
          const links = [
            ...chunks.map((chunk) => ({ rel: "modulepreload", href: `/${chunk.fileName}` })),
            ...sheets.map((sheet) => ({ rel: "preload", as: "style", href: `/${sheet}` })),
          ].filter((link) => !html.includes(`"${link.href}"`) && !linked.has(link.href));
          for (const link of links) linked.add(link.href);
          return links.map((link) => ({
            tag: "link",
            attrs: { ...link, crossorigin: true, fetchpriority: priority },
            injectTo: "head" as const,
          }));
        };
        return [
          ...first.flatMap((module) => linksOf(module, "high")),
          ...later.flatMap((module) => linksOf(module, "low")),
        ];
      },
    },
  };
}
