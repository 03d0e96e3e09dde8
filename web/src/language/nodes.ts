import { createElement, Fragment, type ReactNode } from "react";
import { PLACE, textOf } from "./translation";

/** As `translate`, with elements of the page at the places. */
export function translateNodes(message: string, ...nodes: readonly ReactNode[]): ReactNode {
  const parts = textOf(message).split(PLACE);
  return createElement(Fragment, null, ...parts.map((part, at) => (at % 2 === 0 ? part : nodes[Number(part)])));
}
