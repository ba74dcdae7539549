/** How much memory a process has used. */
import { readFileSync } from "node:fs";

/** The most it ever had resident, in bytes. */
export function peakMemory(pid: number): number {
  const [, kib] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  if (kib === undefined) throw new Error(`no VmHWM of process ${pid}`);
  return Number(kib) * 1024;
}
