/** Triggers and schedules: what starts engines by itself. */
import type { Context } from "../context.ts";
import type { Call, GatewayAnswer } from "../exchange.ts";
import { notFound } from "../problems.ts";

const unbuilt = (): never => {
  throw notFound("This gateway does not serve triggers yet.");
};
export const createTrigger = (_: Context, __: Call<"createTrigger">): GatewayAnswer => unbuilt();
export const listTriggers = (_: Context, __: Call<"listTriggers">): GatewayAnswer => unbuilt();
export const getTrigger = (_: Context, __: Call<"getTrigger">): GatewayAnswer => unbuilt();
export const updateTrigger = (_: Context, __: Call<"updateTrigger">): GatewayAnswer => unbuilt();
export const removeTrigger = (_: Context, __: Call<"removeTrigger">): GatewayAnswer => unbuilt();
