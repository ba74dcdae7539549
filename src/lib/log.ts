/**
 * The log interface of all layers. It is the part of pino's interface that is used, so that a pino logger can be passed
 * as it is. It knows no destination and no format.
 */
export type LogLevel = "debug" | "info" | "warn" | "error";

export interface Logger {
  /** For lines that are usually off: ask before building their fields. */
  isLevelEnabled(level: LogLevel): boolean;
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

const nothing = (): void => {};

export const SILENT: Logger = {
  isLevelEnabled: () => false,
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
};

/** An error and its causes in one line, the outermost first: "A: x, caused by B: y". */
export function describeError(error: unknown): string {
  const seen = new Set<unknown>();
  const parts: string[] = [];
  let current = error;
  while (current !== undefined && current !== null && !seen.has(current)) {
    seen.add(current);
    if (!(current instanceof Error)) {
      parts.push(printable(current));
      break;
    }
    const { code } = current as { code?: unknown };
    parts.push(`${current.name}: ${current.message}${typeof code === "string" ? ` (${code})` : ""}`);
    current = current.cause;
  }
  return parts.length === 0 ? "unknown error" : parts.join(", caused by ");
}

function printable(value: unknown): string {
  try {
    return String(value);
  } catch {
    return typeof value;
  }
}
