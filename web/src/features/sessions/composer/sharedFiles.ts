/** Files that another app shared with Freehold. The service worker keeps them until the page takes them. */

const SHARED = "shared";

let held: readonly File[] = [];

/** Takes the files from the worker, for the composer that is drawn next. */
export async function holdSharedFiles(): Promise<void> {
  const cache = await caches.open(SHARED);
  const answers = await Promise.all((await cache.keys()).map((request) => cache.match(request)));
  held = await Promise.all(answers.filter((answer) => answer !== undefined).map(fileOf));
  await caches.delete(SHARED);
}

async function fileOf(answer: Response): Promise<File> {
  const name = decodeURIComponent(answer.headers.get("x-name") ?? "");
  return new File([await answer.blob()], name, { type: answer.headers.get("content-type") ?? "" });
}

/** The files that are held, once. */
export function takeHeldFiles(): readonly File[] {
  const taken = held;
  held = [];
  return taken;
}
