import type { Fleet, FleetComputer, FleetMachine, FleetNode } from "../../client/api";
import { countOf, formatBytes } from "../../ui/format";

export type Tone = "leaf" | "amber" | "alarm";

/** The one sentence at the top of the page, and its colour. */
export function headlineOf(fleet: Fleet): { text: string; tone: Tone } {
  if (!fleet.ready) {
    return { text: "Room is not given out yet: Ray is starting. Computers that run are not affected.", tone: "amber" };
  }
  const away = fleet.nodes.filter((node) => node.state === "away").length;
  if (away > 0) return { text: away === 1 ? "1 node is away." : `${away} nodes are away.`, tone: "alarm" };
  if (fleet.trouble !== "") return { text: `No machine can be started: ${fleet.trouble}`, tone: "alarm" };
  if (fleet.waiting_count > 0) {
    const text =
      fleet.waiting_count === 1 ? "1 computer waits for room." : `${fleet.waiting_count} computers wait for room.`;
    return { text, tone: "amber" };
  }
  return { text: "All nodes are ready.", tone: "leaf" };
}

/** The machines that come or go, and what is said of each. One that has joined is among the nodes. */
export function movingMachines(fleet: Fleet): { machine: FleetMachine; text: string }[] {
  return fleet.machines
    .filter((machine) => machine.state !== "joined")
    .map((machine) => ({ machine, text: stateOf(machine) }));
}

function stateOf(machine: FleetMachine): string {
  if (machine.trouble !== "") return `Cannot be ended: ${machine.trouble}`;
  return machine.state === "starting" ? "Starting" : "Ending: it had no computers";
}

/** One thing that a node offers, and how much of it is in use. */
export interface RoomMeter {
  label: string;
  used: number;
  total: number;
  text: string;
}

/** What of a node is in use. A node that is away says nothing. */
export function roomOf(node: FleetNode): RoomMeter[] {
  if (node.state === "away") return [];
  const cpus = node.cpus - node.free_cpus;
  const memory = node.memory - node.free_memory;
  const meters = [
    { label: "Processors", used: cpus, total: node.cpus, text: `${round(cpus)} of ${round(node.cpus)}` },
    {
      label: "Memory",
      used: memory,
      total: node.memory,
      text: `${formatBytes(memory)} of ${formatBytes(node.memory)}`,
    },
  ];
  if (node.gpus > 0) {
    const gpus = node.gpus - node.free_gpus;
    meters.push({ label: "GPUs", used: gpus, total: node.gpus, text: `${gpus} of ${node.gpus}` });
  }
  return meters;
}

/** The labels of a node in one line. */
export function labelsOf(node: FleetNode): string {
  return Object.entries(node.labels)
    .map(([name, value]) => `${name}=${value}`)
    .sort()
    .join(", ");
}

/** The computers of each node, by its name, in the order of the reply. */
export function computersByNode(computers: readonly FleetComputer[]): Map<string, FleetComputer[]> {
  const found = new Map<string, FleetComputer[]>();
  for (const computer of computers) {
    const listed = found.get(computer.node);
    if (listed === undefined) found.set(computer.node, [computer]);
    else listed.push(computer);
  }
  return found;
}

/** What is not listed, because there is too much of it. */
export function leftOutOf(shown: number, total: number): string | null {
  return total > shown ? `${countOf(total - shown, "more computer")} not shown.` : null;
}

/** What is said below the computers of one node that are listed: how many there are besides. */
export function othersOf(listed: number, node: FleetNode): string | null {
  return listed === 0 && node.computers === 0 ? "No computers." : leftOutOf(listed, node.computers);
}

function round(value: number): string {
  return String(Math.round(value * 100) / 100);
}
