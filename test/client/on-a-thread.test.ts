/** All that is asked of the transport over the network, asked of the one whose connections are on a thread of their own. */
import { useThread } from "./support/server.ts";

useThread();
await import("./errors.test.ts");
await import("./download.test.ts");
await import("./short-body.test.ts");
await import("./transfers.test.ts");
await import("./operations.test.ts");
