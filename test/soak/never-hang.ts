/**
 * `npm run soak -- never-hang [DIVISOR]`: each call and command on a mount in each kind of trouble, with the
 * real limits (or a DIVISORth of them): prints the longest time of each as a table. Fails when one is over its limit.
 */
import {
  describeRows,
  isLate,
  makeWorkspace,
  type Row,
  runTrouble,
  TROUBLES,
  type TroubleName,
} from "../mount/support/never-hang.ts";
import { createPlace } from "../support/wsfs.ts";

const [divisor = 1] = process.argv.slice(2).map(Number);
if (!(divisor >= 1)) throw new Error("expected DIVISOR");
const place = createPlace();
const rows: Row[] = [];
try {
  const workspace = await makeWorkspace(place);
  for (const trouble of Object.keys(TROUBLES) as TroubleName[]) {
    process.stderr.write(`${trouble}: ${TROUBLES[trouble]}\n`);
    rows.push(...(await runTrouble(place, workspace, trouble, divisor)));
  }
} finally {
  await place.cleanUp();
}
process.stdout.write(`${describeRows(rows).join("\n")}\n`);
for (const { trouble, call, milliseconds, limitMs, said } of rows.filter(isLate)) {
  process.stdout.write(`${trouble}, ${call}: ${milliseconds} ms, limit ${limitMs} ms (${said})\n`);
  process.exitCode = 1;
}
