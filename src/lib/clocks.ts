/**
 * The clocks, each with a type of its own for its times. All are milliseconds at run time; nothing of the types exists
 * there.
 * - Wall time is a number to the compiler too, because `Date` takes and gives it. So is the time of the gateway.
 * - Elapsed time and row time are no numbers to the compiler. So no operator, no comparison and no `Math.max` takes
 *   times of two clocks, or a time and a duration.
 * - A duration is a plain number of milliseconds.
 */
import type { Brand } from "./brand.ts";

/** `Clock.wallClock()`: what people and gateways see, since 1970. */
export type WallTime = number & Brand<"WallTime">;
/** The gateway's wall clock (client/gateway-clock.ts), since 1970. */
export type GatewayTime = number & Brand<"GatewayTime">;
/** `Clock.elapsed()`: the monotonic clock, the same for all processes of one boot. */
export type ElapsedTime = Brand<"ElapsedTime">;
/** The clock of the rows (engine/host/row-clock.ts). */
export type RowTime = Brand<"RowTime">;

export type SteadyTime = ElapsedTime | RowTime;

export const wallTime = (milliseconds: number): WallTime => milliseconds as WallTime;
export const gatewayTime = (milliseconds: number): GatewayTime => milliseconds as GatewayTime;
export const elapsedTime = (milliseconds: number): ElapsedTime => milliseconds as unknown as ElapsedTime;
export const rowTime = (milliseconds: number): RowTime => milliseconds as unknown as RowTime;

/** The time as a number, for what stores or shows it, and for the distance between two clocks. */
export const millisecondsOf = (time: SteadyTime): number => time as unknown as number;

/** The time so many milliseconds later; with a negative number earlier. */
export const plus = <Time extends SteadyTime>(time: Time, milliseconds: number): Time =>
  (millisecondsOf(time) + milliseconds) as unknown as Time;

/** Milliseconds from `since` to `time`; negative when `time` is the earlier one. */
export const minus = <Time extends SteadyTime>(time: Time, since: Time): number =>
  millisecondsOf(time) - millisecondsOf(since);

export const laterOf = <Time extends SteadyTime>(a: Time, b: Time): Time => (a > b ? a : b);
export const earlierOf = <Time extends SteadyTime>(a: Time, b: Time): Time => (a < b ? a : b);

/** The earliest of the times that there are. */
export function earliestOf(times: readonly (RowTime | undefined)[]): RowTime | undefined;
export function earliestOf(times: readonly (ElapsedTime | undefined)[]): ElapsedTime | undefined;
export function earliestOf<Time extends SteadyTime>(times: readonly (Time | undefined)[]): Time | undefined {
  let first: Time | undefined;
  for (const time of times) if (time !== undefined && (first === undefined || time < first)) first = time;
  return first;
}
