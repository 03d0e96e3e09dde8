import type { Image } from "../../../client/api";
import { fitted, kindOf, LARGEST } from "./images.logic";

export interface Picture extends Image {
  id: string;
  name: string;
  /** Bytes as they are sent, before base64. */
  size: number;
  /** Of this page alone; to be revoked when it is put away. */
  url: string;
}

const LONGEST_SIDE = 2048;
const QUALITY = 0.85;

/** Reads what was pasted, dropped or chosen. Throws words for the owner when it is no picture that can be sent. */
export async function readPicture(file: File): Promise<Picture> {
  const name = file.name || "Pasted image";
  const mime = kindOf(new Uint8Array(await file.slice(0, 16).arrayBuffer()));
  const blob = mime !== null && file.size <= LARGEST ? file : await smaller(file, name);
  const type = blob === file ? mime : "image/jpeg";
  if (type === null) throw new Error(`${name} is no image that can be sent`);
  return { id: crypto.randomUUID(), name, mime: type, size: blob.size, data: await base64(blob), url: URL.createObjectURL(new Blob([blob], { type })) };
}

/** A picture that is too large, or of a kind that only browsers know, as a JPEG of a bearable size. */
async function smaller(file: File, name: string): Promise<Blob> {
  const bitmap = await createImageBitmap(file).catch(() => null);
  if (bitmap === null) throw new Error(`${name} is no image that can be sent`);
  const { width, height } = fitted(bitmap.width, bitmap.height, LONGEST_SIDE);
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const paper = canvas.getContext("2d");
  if (paper === null) throw new Error(`${name} could not be made smaller`);
  paper.fillStyle = "white";
  paper.fillRect(0, 0, width, height);
  paper.drawImage(bitmap, 0, 0, width, height);
  bitmap.close();
  const made = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/jpeg", QUALITY));
  if (made === null || made.size > LARGEST) throw new Error(`${name} is too large`);
  return made;
}

async function base64(blob: Blob): Promise<string> {
  const bytes = new Uint8Array(await blob.arrayBuffer());
  const pieces: string[] = [];
  for (let at = 0; at < bytes.length; at += 0x8000) pieces.push(String.fromCharCode(...bytes.subarray(at, at + 0x8000)));
  return btoa(pieces.join(""));
}
