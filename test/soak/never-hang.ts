/**
 * `npm run soak -- never-hang [DIVISOR] [user]`: each call and command on a mount in each kind of trouble, with the
 * real limits (or a DIVISORth of them): prints the longest time of each as a table. Fails when one is over its limit.
 */
import {
  describeLongest,
  describeRows,
  isLate,
  makeWorkspace,
  type Row,
  runTrouble,
  TROUBLES,
  type TroubleName,
} from "../mount/support/never-hang.ts";
import { becomeOrdinaryUser } from "../support/ordinary-user.ts";
import { createPlace } from "../support/wsfs.ts";

const divisor = Number(process.argv[2] ?? 1);
if (!(divisor >= 1)) throw new Error("expected DIVISOR");
const user = process.argv[3] === "user" ? await becomeOrdinaryUser("") : undefined;
const place = createPlace(undefined, user);
const rows: Row[] = [];
try {
  const workspace = await makeWorkspace(place, user);
  for (const trouble of Object.keys(TROUBLES) as TroubleName[]) {
    process.stderr.write(`${trouble}: ${TROUBLES[trouble]}\n`);
    rows.push(...(await runTrouble(place, workspace, trouble, divisor)));
  }
} finally {
  await place.cleanUp();
  await user?.end();
}
process.stdout.write(`${describeRows(rows).join("\n")}\n${describeLongest(rows)}\n`);
for (const { trouble, call, milliseconds, limitMs, said } of rows.filter(isLate)) {
  process.stdout.write(`${trouble}, ${call}: ${milliseconds} ms, limit ${limitMs} ms (${said})\n`);
  process.exitCode = 1;
}
