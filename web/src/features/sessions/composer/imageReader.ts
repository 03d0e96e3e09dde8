import type { PromptImage } from "../../../client/api";
import { imageTypeOf, MAX_IMAGE_BYTES, scaledSize } from "./images.logic";

export interface ImageAttachment extends PromptImage {
  id: string;
  name: string;
  /** Bytes as they are sent, before base64. */
  size: number;
  /** An object URL. It must be revoked when the image is removed. */
  url: string;
}

const MAX_SIDE = 2048;
const QUALITY = 0.85;

/** Reads an image that was pasted, dropped or chosen. Throws an error with a text for the owner when it cannot be sent. */
export async function readImage(file: File): Promise<ImageAttachment> {
  const name = file.name || "Pasted image";
  const mime = imageTypeOf(new Uint8Array(await file.slice(0, 16).arrayBuffer()));
  const blob = mime !== null && file.size <= MAX_IMAGE_BYTES ? file : await scaledDown(file, name);
  const type = blob === file ? mime : "image/jpeg";
  if (type === null) throw new Error(`${name} is not an image that can be sent`);
  return {
    id: crypto.randomUUID(),
    name,
    mime: type,
    size: blob.size,
    data: toBase64(new Uint8Array(await blob.arrayBuffer())),
    url: URL.createObjectURL(new Blob([blob], { type })),
  };
}

/** An image that is too large, or that models do not accept, as a smaller JPEG. */
async function scaledDown(file: File, name: string): Promise<Blob> {
  const bitmap = await createImageBitmap(file).catch(() => null);
  if (bitmap === null) throw new Error(`${name} is not an image that can be sent`);
  const { width, height } = scaledSize(bitmap.width, bitmap.height, MAX_SIDE);
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  if (context === null) throw new Error(`${name} could not be scaled down`);
  context.fillStyle = "white";
  context.fillRect(0, 0, width, height);
  context.drawImage(bitmap, 0, 0, width, height);
  bitmap.close();
  const made = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/jpeg", QUALITY));
  if (made === null || made.size > MAX_IMAGE_BYTES) throw new Error(`${name} is too large to send`);
  return made;
}

/** In pieces: a call has a limit of arguments. */
export function toBase64(bytes: Uint8Array): string {
  const pieces: string[] = [];
  for (let at = 0; at < bytes.length; at += 0x8000)
    pieces.push(String.fromCharCode(...bytes.subarray(at, at + 0x8000)));
  return btoa(pieces.join(""));
}
