/** API keys over HTTP: made, listed, ended. */
import type { Context } from "./context.ts";
import type { Call, GatewayAnswer } from "./exchange.ts";
import { notFound } from "./problems.ts";

const unbuilt = (): never => {
  throw notFound("This gateway does not serve API keys yet.");
};
export const createApiKey = (_: Context, __: Call<"createApiKey">): GatewayAnswer => unbuilt();
export const listApiKeys = (_: Context, __: Call<"listApiKeys">): GatewayAnswer => unbuilt();
export const revokeApiKey = (_: Context, __: Call<"revokeApiKey">): GatewayAnswer => unbuilt();
