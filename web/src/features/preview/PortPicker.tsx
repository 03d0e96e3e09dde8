import type { PreviewPort } from "../../client/api";
import { nameOf } from "./preview.logic";

interface PortPickerProps {
  ports: readonly PreviewPort[];
  port: number;
  onChoose: (port: number) => void;
}

/** The ports on which programs listen, and the wanted one. */
export function PortPicker({ ports, port, onChoose }: PortPickerProps) {
  const listens = ports.some((one) => one.port === port);
  return (
    <select
      className="preview-port"
      aria-label="Port"
      value={port}
      onChange={(event) => onChoose(Number(event.target.value))}
    >
      {!listens && <option value={port}>{port} · no program yet</option>}
      {ports.map((one) => (
        <option key={one.port} value={one.port}>
          {nameOf(one) === "" ? one.port : `${one.port} · ${nameOf(one)}`}
        </option>
      ))}
    </select>
  );
}
