/** Stand-ins for services that a machine or a mount does not have. */
import { type Accounts, type FastPath, type HandleTable, handleId, type Passthrough } from "../api/index.ts";

/** For a machine without accounts, as in tests. */
export const NO_ACCOUNTS: Accounts = { numberOf: async () => undefined, nameOf: async () => undefined };

/** Without passthrough: the kernel gets no file. */
export const NO_PASSTHROUGH: Passthrough = {
  isOn: false,
  timesAreExact: true,
  register: () => undefined,
  unregister: () => {},
};

/** Without the fast path: all bytes go through JavaScript. */
export const NO_FAST_PATH: FastPath = {
  grantRead: () => {},
  grantWrite: () => {},
  revokeReads: () => {},
  revokeWrites: () => {},
  end: () => {},
};

/** A table in memory only: open handles end with this process. */
export function countHandles(): HandleTable {
  let last = 0;
  return {
    add() {
      last += 1;
      return handleId(last);
    },
    remove() {},
    openedBy: () => undefined,
  };
}
