/** What requests that were not answered say of the gateway, besides to who waits for them. */
import { isOfStranger } from "../client/connector.ts";
import { RemoteError } from "../client/errors.ts";
import type { Transport } from "../contract/http.ts";
import type { Logger } from "../lib/log.ts";

/** `onSilence` is called for each. That somebody else listens where the gateway should is logged, in the same words once. */
export function onGatewayFailure(transport: Transport, log: Logger, onSilence: () => void): Transport {
  let told: string | undefined;
  return {
    send: (request) =>
      transport.send(request).catch((error: unknown) => {
        onSilence();
        if (error instanceof RemoteError && isOfStranger(error) && error.message !== told) {
          told = error.message;
          log.warn({}, told);
        }
        throw error;
      }),
    close: () => transport.close(),
  };
}
