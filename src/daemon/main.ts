/** The program that the supervisor starts: the daemon with the real engine. */
import { startEngine } from "../engine/start/index.ts";
import { runDaemonProcess } from "./process.ts";

await runDaemonProcess(startEngine);
