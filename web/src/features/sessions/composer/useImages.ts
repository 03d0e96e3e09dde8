import { useCallback, useEffect, useRef, useState } from "react";
import { useToasts } from "../../../ui/Toasts";
import { type ImageAttachment, readImage } from "./imageReader";
import { imageProblem } from "./images.logic";

export interface ImageAttachments {
  all: readonly ImageAttachment[];
  /** Whether images that were added are still being read. */
  isReading: boolean;
  add: (files: readonly File[]) => Promise<void>;
  remove: (id: string) => void;
  clear: () => void;
}

/** The images of the next prompt. They are not part of the stored draft. */
export function useImages(): ImageAttachments {
  const [all, setAll] = useState<readonly ImageAttachment[]>([]);
  const [reading, setReading] = useState(0);
  const held = useRef(all);
  const toasts = useToasts();
  const replace = useCallback((next: readonly ImageAttachment[]) => {
    for (const one of held.current) if (!next.includes(one)) URL.revokeObjectURL(one.url);
    held.current = next;
    setAll(next);
  }, []);
  useEffect(
    () => () => {
      for (const image of held.current) URL.revokeObjectURL(image.url);
    },
    [],
  );
  const add = useCallback(
    async (files: readonly File[]) => {
      if (files.length === 0) return;
      setReading((count) => count + 1);
      for (const file of files) {
        try {
          const image = await readImage(file);
          const problem = imageProblem(held.current, image.size);
          if (problem !== null) {
            URL.revokeObjectURL(image.url);
            throw new Error(problem);
          }
          replace([...held.current, image]);
        } catch (error) {
          toasts.refused(error instanceof Error ? error.message : "The image could not be read");
        }
      }
      setReading((count) => count - 1);
    },
    [replace, toasts],
  );
  const remove = (id: string) => replace(held.current.filter((one) => one.id !== id));
  return { all, isReading: reading > 0, add, remove, clear: () => replace([]) };
}
