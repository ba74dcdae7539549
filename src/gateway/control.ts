/**
 * The control endpoint of faults. It exists only if the gateway was started with it. GET /faults shows the faults,
 * PATCH /faults changes those that it names. It needs no token, and no fault affects it.
 */
import type { GatewayOptions } from "./context.ts";
import { type GatewayAnswer, type GatewayRequest, jsonAnswer } from "./exchange.ts";
import { faultChanges, faultOptions } from "./fault-options.ts";
import { check, invalid, ProblemError } from "./problems.ts";

export const CONTROL_PATH = "/faults";

export async function answerControl(
  request: GatewayRequest,
  options: Readonly<GatewayOptions>,
  change: (changes: Partial<GatewayOptions>) => void,
): Promise<GatewayAnswer> {
  const [unknown] = Object.keys(request.query);
  if (unknown !== undefined) throw invalid(unknown, `${unknown}: unknown field`);
  if (request.method === "PATCH") {
    if (request.body?.kind !== "json") {
      throw invalid("body", "body: expected a JSON object (content-type application/json)");
    }
    const changes = check(faultChanges, await request.body.read(options.maxJsonBytes), "body");
    change(Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined)));
  } else if (request.method !== "GET") {
    throw new ProblemError(405, `Expected GET, PATCH here, got ${request.method}.`, {
      headers: { allow: "GET, PATCH" },
    });
  }
  const { maxFileBytes: _, maxJsonBytes: __, ...shown } = options;
  return jsonAnswer(200, faultOptions.parse(shown));
}
