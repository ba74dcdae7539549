/**
 * The log of a running gateway on standard error, one line for each request: columns on a terminal, JSON lines
 * elsewhere. If the reader does not read, the gateway neither stops nor fills its memory.
 */
import { type Logger as Pino, pino, stdTimeFunctions } from "pino";
import { describeError, type Logger, type LogLevel } from "../lib/log.ts";
import { formatSize } from "./wording.ts";

/** The limit of lines that wait for a reader. Later lines are dropped. */
const WAITING_BYTES = 256 * 1024;

export interface LogOutput {
  readonly isTTY?: boolean;
  /** Bytes that are written and not yet taken. */
  readonly writableLength: number;
  write(text: string): unknown;
  on(event: "error", listener: () => void): unknown;
}

interface GatewayLogOptions {
  readonly level: LogLevel;
  readonly json: boolean;
  readonly output?: LogOutput;
  readonly environment?: NodeJS.ProcessEnv;
}

export function createGatewayLog(options: GatewayLogOptions): Logger {
  const { level, json, output = process.stderr, environment = process.env } = options;
  let lost = false;
  // The reader is gone, which is no reason to end.
  output.on("error", () => {
    lost = true;
  });
  const write = (line: string): void => {
    if (!lost && output.writableLength <= WAITING_BYTES) output.write(line);
  };
  if (json || output.isTTY !== true) return jsonLog(level, write);
  return readableLog(level, write, (environment.NO_COLOR ?? "") === "");
}

function jsonLog(level: LogLevel, write: (line: string) => void): Pino {
  const formatters = { level: (label: string) => ({ level: label }) };
  return pino({ level, base: null, timestamp: stdTimeFunctions.isoTime, formatters }, { write });
}

const LEVELS: readonly LogLevel[] = ["debug", "info", "warn", "error"];

function readableLog(level: LogLevel, write: (line: string) => void, colored: boolean): Logger {
  const isLevelEnabled = (asked: LogLevel) => LEVELS.indexOf(asked) >= LEVELS.indexOf(level);
  const at = (own: LogLevel) => (fields: object, message: string) => {
    if (!isLevelEnabled(own)) return;
    const text = isRequest(fields) ? requestLine(fields, colored) : `${message}${fieldsText(fields)}`;
    write(`${clockTime(new Date())}  ${printable(text)}\n`);
  };
  return { isLevelEnabled, debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

interface RequestFields {
  readonly method: string;
  readonly path: string;
  readonly query?: string;
  readonly status: number;
  readonly ms: number;
  readonly bytes: number;
  readonly broken?: boolean;
}

function isRequest(fields: object): fields is RequestFields {
  return "method" in fields && "path" in fields && "status" in fields && "ms" in fields && "bytes" in fields;
}

function requestLine(request: RequestFields, colored: boolean): string {
  const { method, path, query, status, ms, bytes, broken = false } = request;
  const shown = status === 0 ? "---" : String(status);
  return [
    method.padEnd(6),
    colored ? `${COLORS[broken ? 0 : Math.floor(status / 100)] ?? ""}${shown}${PLAIN}` : shown,
    `${ms.toFixed(1)} ms`.padStart(10),
    formatSize(bytes).padStart(8),
    ` ${path}${query === undefined ? "" : `?${query}`}${broken ? "  (broken off)" : ""}`,
  ].join(" ");
}

const ESCAPE = "\u001b";
const PLAIN = `${ESCAPE}[0m`;
/** By the first digit of the status; 0 stands for no answer. */
const COLORS: readonly string[] = [35, 36, 32, 36, 33, 31].map((color) => `${ESCAPE}[${color}m`);

function fieldsText(fields: object): string {
  return Object.entries(fields)
    .map(([name, value]) => ` ${name}=${value instanceof Error ? describeError(value) : JSON.stringify(value)}`)
    .join("");
}

/** Escapes characters that move a terminal's cursor. Our own colors stay. */
function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is meant
  return text.replace(/(?!\u001b\[\d+m)[\u0000-\u001f\u007f-\u009f]/g, (character) => {
    return `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
  });
}

function clockTime(time: Date): string {
  return [time.getHours(), time.getMinutes(), time.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
}
