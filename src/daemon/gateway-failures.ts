/** Looks at failed requests for what they tell of the gateway. Their senders get the errors unchanged. */
import { isOfStranger } from "../client/connector.ts";
import { RemoteError } from "../client/errors.ts";
import type { Transport } from "../contract/http.ts";
import type { Logger } from "../lib/log.ts";

/**
 * Calls `onSilence` for each failed request. Logs when another user's process listens where the gateway should; the
 * same message only once in a row.
 */
export function onGatewayFailure(transport: Transport, log: Logger, onSilence: () => void): Transport {
  let lastLogged: string | undefined;
  return {
    send: (request) =>
      transport.send(request).catch((error: unknown) => {
        onSilence();
        if (error instanceof RemoteError && isOfStranger(error) && error.message !== lastLogged) {
          lastLogged = error.message;
          log.warn({}, lastLogged);
        }
        throw error;
      }),
    close: () => transport.close(),
  };
}
