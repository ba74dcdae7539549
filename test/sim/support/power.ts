/** Power loss for a mount of a world: its rows go back to their last sync, its files stay as they are. */
import type { Rows } from "./kept-rows.ts";
import type { Mount, MountOptions } from "./mount.ts";

/** `options` are for the world; `lose` takes the power from its mount, and the rows that were not synced, or not. */
export function withPower() {
  let boots = 1;
  let synced: Rows | undefined;
  const options: { readonly engine: NonNullable<MountOptions["engine"]> } = {
    engine: (_files, _database, { settings, copyRows }) => ({
      syncRows: async () => {
        synced = copyRows();
      },
      settings: { ...settings, boot: `boot ${boots}` },
    }),
  };
  return {
    options,
    /** From here on its rows as they are now survive. */
    sync(mount: Mount): void {
      synced = mount.copyRows();
    },
    lose(mount: Mount, { keepsRows = false } = {}): void {
      boots += 1;
      mount.crash();
      if (!keepsRows) mount.replaceRows(synced);
    },
  };
}
