/** The real system calls, for tests of what is built on them. */
import type { SystemCalls } from "../../src/content/disk-files.ts";
import * as real from "../../src/content/system-calls.ts";

export const systemCalls: SystemCalls = real;
