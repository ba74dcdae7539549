/** Text for people: page by page on a terminal, as their pager shows it; elsewhere as it is. */
import { spawn } from "node:child_process";

/** Quits where all fits the screen, keeps colours, and leaves the text on the screen. */
const PAGER = "less -FRX";

export async function showInPager(text: string): Promise<void> {
  if (!process.stdout.isTTY || !(await isShown(process.env.PAGER || PAGER, text))) process.stdout.write(text);
}

/** True: the pager ran. A pager that a person leaves before the end has shown enough. */
function isShown(pager: string, text: string): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn("/bin/sh", ["-c", pager], { stdio: ["pipe", "inherit", "inherit"] });
    // The shell's exit code for a program that is not there.
    const missing = 127;
    child.once("error", () => resolve(false));
    child.once("close", (code) => resolve(code !== missing));
    child.stdin.on("error", () => {});
    child.stdin.end(text);
  });
}
