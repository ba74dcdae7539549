/** The program the supervisor starts: the daemon with the real engine. */
import { startEngine } from "../vfs/start/start-engine.ts";
import { runDaemonProcess } from "./process.ts";

await runDaemonProcess(startEngine);
