/** The small files that are sent by either side of the queue's benchmark. */
export const FILES = 10_000;
export const BYTES = 1024;
/** As a daemon has. */
export const CONNECTIONS = 32;
/** The engine has so many in hand, as in a daemon. */
export const REQUESTS = 48;

/** Every file its own content, the same on both sides. */
export const contentOf = (index: number) => Buffer.alloc(BYTES, `content ${index} `);
