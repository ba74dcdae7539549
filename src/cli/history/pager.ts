/** Shows text to a person: on a terminal with their pager; elsewhere as it is. */
import { spawn } from "node:child_process";

/** Quits when the text fits the screen, keeps colors, and leaves the text on the screen. */
const PAGER = "less -FRX";

export async function showInPager(text: string): Promise<void> {
  if (!process.stdout.isTTY || !(await isShown(process.env.PAGER || PAGER, text))) process.stdout.write(text);
}

/** True: the pager ran. A person who leaves the pager before the end has seen enough. */
function isShown(pager: string, text: string): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn("/bin/sh", ["-c", pager], { stdio: ["pipe", "inherit", "inherit"] });
    // The shell's exit code for a program that does not exist.
    const missing = 127;
    child.once("error", () => resolve(false));
    child.once("close", (code) => resolve(code !== missing));
    child.stdin.on("error", () => {});
    child.stdin.end(text);
  });
}
