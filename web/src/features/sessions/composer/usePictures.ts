import { useCallback, useEffect, useRef, useState } from "react";
import { useToasts } from "../../../ui/Toasts";
import { refusal } from "./images.logic";
import { readPicture, type Picture } from "./images";

export interface Pictures {
  all: readonly Picture[];
  add: (files: readonly File[]) => Promise<void>;
  remove: (id: string) => void;
  clear: () => void;
  put: (pictures: readonly Picture[]) => void;
}

/** The images that go with the next prompt. They stay on this page: no draft keeps them. */
export function usePictures(): Pictures {
  const [all, setAll] = useState<readonly Picture[]>([]);
  const held = useRef(all);
  const toasts = useToasts();
  const put = useCallback((next: readonly Picture[]) => {
    for (const one of held.current) if (!next.includes(one)) URL.revokeObjectURL(one.url);
    held.current = next;
    setAll(next);
  }, []);
  useEffect(() => () => held.current.forEach((one) => URL.revokeObjectURL(one.url)), []);
  const add = useCallback(
    async (files: readonly File[]) => {
      for (const file of files) {
        try {
          const picture = await readPicture(file);
          const no = refusal(held.current, picture.size);
          if (no !== null) {
            URL.revokeObjectURL(picture.url);
            throw new Error(no);
          }
          put([...held.current, picture]);
        } catch (error) {
          toasts.refused(error instanceof Error ? error.message : "The image could not be read");
        }
      }
    },
    [put, toasts],
  );
  return { all, add, put, remove: (id) => put(held.current.filter((one) => one.id !== id)), clear: () => put([]) };
}
