/** For vi.waitFor, whose own limit is a second: the speed of the machine decides nothing. */
export const patiently = { timeout: 20_000, interval: 20 };
