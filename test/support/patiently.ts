/** Options of vi.waitFor and vi.waitUntil, whose default limit is one second: the speed of the machine decides nothing. */
export const patiently = { timeout: 20_000, interval: 20 };
