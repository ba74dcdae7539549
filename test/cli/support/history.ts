/** A mount of a gateway's workspace, commands beside it, and the same gateway as another program has it. */
import { connect, type Gateway, tokenFile } from "../../../src/client/index.ts";
import { check, createPlace, type Place, type TestGateway, type TestMount } from "../../support/wsfs.ts";

export interface History {
  readonly place: Place;
  readonly mount: TestMount;
  /** The one that listens now. */
  gateway: TestGateway;
  readonly other: Gateway;
  wsfs(...args: string[]): ReturnType<Place["wsfs"]>;
  /** Standard output of one that succeeds. */
  output(...args: string[]): Promise<string>;
  /** What it prints with --json. */
  json(...args: string[]): Promise<Record<string, unknown>[]>;
  /** In the mount; then all of it is at the gateway. */
  work(script: string): Promise<void>;
  /** The gateway, which has --faults, misbehaves like this from now on (docs/gateway/faults.md). */
  setFaults(settings: object): Promise<void>;
  end(): Promise<void>;
}

/** A time as commands print it, as a pattern. */
export const TIME = "\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d";

export const linesOf = (text: string) =>
  text
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown>);

/** `args`: flags of the gateway. */
export async function createHistory(args: readonly string[] = []): Promise<History> {
  const place = createPlace();
  const gateway = await place.gateway({ args });
  const mount = await place.mount(gateway);
  const { baseUrl, workspace } = gateway;
  const other = connect({ baseUrl, credentials: tokenFile(gateway.tokenFile), workspace });
  const wsfs = (...args: string[]) => place.wsfs(args);
  const output = async (...args: string[]) => check(await wsfs(...args)).stdout;
  return {
    ...{ place, gateway, mount, other, wsfs, output },
    json: async (...args) => linesOf(await output(...args, "--json")),
    async work(script) {
      check(await mount.sh(`set -e; ${script}`));
      check(await wsfs("drain", mount.dir));
    },
    async setFaults(settings) {
      const headers = { "content-type": "application/json" };
      const body = JSON.stringify(settings);
      const answer = await fetch(`${baseUrl}/faults`, { method: "PATCH", headers, body });
      if (answer.status !== 200) throw new Error(await answer.text());
    },
    async end() {
      await other.close();
      await place.cleanUp();
    },
  };
}

/** Its commands say in one line that it keeps no history. */
export async function mountBare(place: Place): Promise<TestMount> {
  const bare = await place.gateway({ name: "bare", args: ["--bare"] });
  const profile = new URL("../../../src/gateway/bare.profile.json", import.meta.url).pathname;
  return place.mount(bare, { name: "plain", args: ["--profile", profile] });
}
