/**
 * A parser for each kind of value of a flag or variable. Each throws an Error whose message is the expected form; the
 * caller adds the name of the flag and the given text.
 */

import { resolve } from "node:path";
import { RETRY_AFTER_SECONDS_MAX, SKEW_MS_MAX } from "../gateway/fault-limits.ts";
import { isLoopbackName } from "../lib/loopback.ts";
import { parseMoment } from "../lib/moment.ts";

export interface Kind<T> {
  /** Stands for the value in the help. */
  readonly placeholder: string;
  parse(text: string): T;
}

export const text: Kind<string> = {
  placeholder: "TEXT",
  parse(given) {
    if (given === "") throw new Error("a value that is not empty");
    return given;
  },
};

export function named(placeholder: string): Kind<string> {
  return { ...text, placeholder };
}

/** A URL of http or https, without credentials and without the "/" at its end. */
export const baseUrl: Kind<string> = {
  placeholder: "URL",
  parse(given) {
    const expected = "a URL such as https://gateway.example.com";
    let url: URL;
    try {
      url = new URL(given);
    } catch {
      throw new Error(expected);
    }
    if (url.protocol !== "http:" && url.protocol !== "https:") throw new Error(expected);
    if (url.username !== "" || url.password !== "") throw new Error(`${expected}, without a user or password in it`);
    if (url.search !== "" || url.hash !== "") throw new Error(`${expected}, without "?" or "#"`);
    return url.href.replace(/\/+$/, "");
  },
};

/** A URL exactly as the issuer writes it: a "/" at its end counts. */
export const issuer: Kind<string> = {
  placeholder: "URL",
  parse(given) {
    const { protocol, hostname } = new URL(baseUrl.parse(given));
    // Over plain http, any machine on the way could pose as the issuer.
    if (protocol === "http:" && !isLoopbackName(hostname)) throw new Error("an https URL, or one of this machine");
    return given;
  },
};

const UNITS: Readonly<Record<string, number>> = { "": 1, K: 1024, M: 1024 ** 2, G: 1024 ** 3, T: 1024 ** 4 };

/** Bytes; K, M, G, T are powers of 1024. */
export const size: Kind<number> = {
  placeholder: "SIZE",
  parse(given) {
    const match = /^(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?$/i.exec(given);
    const bytes = Math.round(Number(match?.[1]) * (UNITS[(match?.[2] ?? "").toUpperCase()] ?? Number.NaN));
    if (!Number.isSafeInteger(bytes)) throw new Error("a number of bytes such as 500M or 2G");
    return bytes;
  },
};

function number(placeholder: string, expected: string, accept: (value: number) => boolean): Kind<number> {
  return {
    placeholder,
    parse(given) {
      const value = given.trim() === "" ? Number.NaN : Number(given);
      if (!Number.isFinite(value) || !accept(value)) throw new Error(expected);
      return value;
    },
  };
}

export const seconds = number("S", "a number of seconds from 0", (value) => value >= 0 && value <= 1e9);
export const divisor = number("N", "a number from 1", (value) => value >= 1 && value <= 1000);
export const retrySeconds = number("S", "a whole number of seconds from 0 to 86400", (value) => {
  return Number.isInteger(value) && value >= 0 && value <= RETRY_AFTER_SECONDS_MAX;
});
export const lifeSeconds = number("S", "a whole number of seconds from 1", (value) => {
  return Number.isInteger(value) && value >= 1 && value <= 1e9;
});
/** Seconds; m, h, d are minutes, hours, days. */
export const lifetime: Kind<number> = {
  placeholder: "TIME",
  parse(given) {
    const [, amount, unit = ""] = /^(\d{1,9})([smhd]?)$/.exec(given) ?? [];
    const seconds = Number(amount) * ({ "": 1, s: 1, m: 60, h: 3600, d: 86_400 }[unit] ?? Number.NaN);
    if (!(seconds >= 1 && seconds <= 1e9)) throw new Error("a time such as 90m, 12h or 30d");
    return seconds;
  },
};

export const moment: Kind<Date> = {
  placeholder: "TIME",
  parse: (given) => new Date(parseMoment(given, Date.now())),
};

/** A folder of a workspace; "/projects/x/" and "projects/x" are the same. Undefined: all of the workspace. */
export const workspacePath: Kind<string | undefined> = {
  placeholder: "PATH",
  parse(given) {
    if (given === "") throw new Error("a path in the workspace, such as /projects/x");
    const path = resolve("/", given);
    return path === "/" ? undefined : path;
  },
};

/** At most a week. */
export const runSeconds = number("S", "a whole number of seconds from 1 to 604800 (a week)", (value) => {
  return Number.isInteger(value) && value >= 1 && value <= 604_800;
});
export const executionCount = number("N", "a whole number from 1 to 1000", (value) => {
  return Number.isInteger(value) && value >= 1 && value <= 1000;
});
export const rate = number("0..1", "a number from 0 to 1", (value) => value >= 0 && value <= 1);
export const port = number("N", "a port from 0 (any free one) to 65535", (value) => {
  return Number.isInteger(value) && value >= 0 && value <= 65535;
});

/** 0 stands for all. */
export const itemCount = number("N", "a whole number from 0 (all) to 1000000000", (value) => {
  return Number.isInteger(value) && value >= 0 && value <= 1e9;
});

export const nameCount = number("N", "a whole number from 0 to 1000000000", (value) => {
  return Number.isInteger(value) && value >= 0 && value <= 1e9;
});

export const changeCount = number("N", "a whole number from 1 to 1000000", (value) => {
  return Number.isInteger(value) && value >= 1 && value <= 1e6;
});

/** Bytes per second. */
export const speed: Kind<number> = {
  placeholder: "SIZE",
  parse(given) {
    const bytes = size.parse(given);
    if (bytes > 1e12) throw new Error("at most 1e12 bytes a second, such as 500K or 2M");
    return bytes;
  },
};

/** A time, and how much longer it may take at random: "50" or "50+20". */
export const jittered: Kind<{ readonly ms: number; readonly jitterMs: number }> = {
  placeholder: "MS[+JITTER]",
  parse(given) {
    const match = /^(\d+(?:\.\d+)?)(?:\+(\d+(?:\.\d+)?))?$/.exec(given.trim());
    const [ms, jitterMs] = [Number(match?.[1]), Number(match?.[2] ?? 0)];
    if (match === null || ms > 1e9 || jitterMs > 1e9) {
      throw new Error("a number of milliseconds from 0, with +JITTER where it varies, such as 50 or 50+20");
    }
    return { ms, jitterMs };
  },
};

/** The lead of one clock over another. Negative: behind. */
export const skew = number("MS", "a number of milliseconds, at most 12 hours ahead or (with -) behind", (value) => {
  return Number.isInteger(value) && Math.abs(value) <= SKEW_MS_MAX;
});

/** "reset-after=0.1", or for one operation "upload:reset-after=0.1". The gateway knows which faults there are. */
export const fault: Kind<{ readonly target: string; readonly fault: string; readonly rate: number }> = {
  placeholder: "[OPERATION:]FAULT=0..1",
  parse(given) {
    const match = /^(?:([A-Za-z]+):)?([a-z-]+)=([0-9.]+)$/.exec(given.trim());
    const share = Number(match?.[3]);
    if (match === null || !(share >= 0 && share <= 1)) {
      throw new Error("a fault with its rate, such as reset-after=0.1 or upload:unavailable=0.5");
    }
    return { target: match[1] ?? "all", fault: match[2] ?? "", rate: share };
  },
};

export function oneOf<const T extends readonly string[]>(...choices: T): Kind<T[number]> {
  return {
    placeholder: choices.join("|"),
    parse(given) {
      const found = choices.find((choice) => choice === given);
      if (found === undefined) throw new Error(`one of ${choices.join(", ")}`);
      return found;
    },
  };
}

/** "2G" for each workspace, or "main=2G" for one. */
export const quota: Kind<{ readonly workspace: string; readonly bytes: number }> = {
  placeholder: "[WORKSPACE=]SIZE",
  parse(given) {
    const at = given.lastIndexOf("=");
    if (at === 0) throw new Error("a size such as 2G, or one for a workspace such as main=2G");
    return { workspace: at === -1 ? "all" : given.slice(0, at), bytes: size.parse(given.slice(at + 1)) };
  },
};

/** The value of a switch that is set by a variable or by `--flag=VALUE`. */
export function parseSwitch(given: string): boolean {
  if (/^(1|true|yes|on)$/i.test(given)) return true;
  if (/^(0|false|no|off)$/i.test(given)) return false;
  throw new Error("1 or 0");
}

/** "name=value". */
export const pair: Kind<{ readonly name: string; readonly value: string }> = {
  placeholder: "NAME=VALUE",
  parse(given) {
    const at = given.indexOf("=");
    if (at < 1) throw new Error("a name and a value such as pageSize=10");
    return { name: given.slice(0, at), value: given.slice(at + 1) };
  },
};
