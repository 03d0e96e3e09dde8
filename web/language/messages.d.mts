import type { Plugin } from "vite";

export interface Message {
  message: string;
}
export function findMessages(source: string, file: string): Message[];
export function translateSource(source: string, file: string): string | null;
export function translations(): Plugin;
export function isSource(path: string): boolean;
