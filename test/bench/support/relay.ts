/** A relay that makes a server of this machine far away (far-away.mjs). */
import { fileURLToPath } from "node:url";
import type { Place } from "../../support/wsfs.ts";
import { speaking } from "./speaking.ts";

const FAR_AWAY = fileURLToPath(new URL("far-away.mjs", import.meta.url));

export interface Line {
  /** The round trip. */
  readonly milliseconds: number;
  /** Each way; without: as fast as the machine is. */
  readonly bytesPerSecond?: number;
}

/** The URL by which the server of that port is far away. It ends with the place. */
export async function startRelay(place: Place, port: string, line: Line): Promise<string> {
  const args = [FAR_AWAY, port, String(line.milliseconds), String(line.bytesPerSecond ?? 0)];
  const relay = speaking(place, process.execPath, args);
  return `http://127.0.0.1:${await relay.said(/port (\d+)/)}`;
}
