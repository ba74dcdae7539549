/**
 * The request of a program that signs in: it is found by the code the program shows, and approved or denied by a
 * person.
 */
import type { Provider } from "oidc-provider";
import { isScope, SCOPES, type Scope } from "../../contract/scopes.ts";
import type { Account, AccountStore } from "../accounts/index.ts";
import { LOGIN_CHOICE } from "./authorization-server.ts";

type DeviceCode = NonNullable<Awaited<ReturnType<Provider["DeviceCode"]["findByUserCode"]>>>;

export interface DeviceRequest {
  /** As the program shows it. */
  readonly code: string;
  readonly application: string;
  readonly scopes: readonly Scope[];
  /** False: another answer came first. */
  approve(choice: Approval): Promise<boolean>;
  deny(): Promise<boolean>;
}

interface Approval {
  readonly account: Account;
  readonly scopes: readonly Scope[];
  /** Id of the only workspace the program may use. */
  readonly workspace: string | undefined;
}

export interface DeviceRequests {
  /** Undefined: no program waits with this code, or not any more. */
  find(code: string): Promise<DeviceRequest | undefined>;
}

/** Returns the code in its plain form, however a person types it. */
const plainCode = (code: string) => code.toUpperCase().replace(/[^A-Z]/g, "");
const shownCode = (plain: string) => `${plain.slice(0, 4)}-${plain.slice(4)}`;

export function createDeviceRequests(provider: Provider, issuer: string, { records }: AccountStore): DeviceRequests {
  const { DeviceCode, Grant, Client } = provider;
  const isOpen = (found: DeviceCode | undefined): found is DeviceCode =>
    found !== undefined && !found.isExpired && found.error === undefined && found.accountId === undefined;

  return {
    async find(code) {
      const plain = plainCode(code);
      const found = await DeviceCode.findByUserCode(plain);
      if (!isOpen(found)) return undefined;
      const client = await Client.find(found.clientId ?? "");
      if (client === undefined) return undefined;
      const { scope } = found.params ?? {};
      const asked = typeof scope === "string" ? scope.split(" ").filter(isScope) : [];
      const scopes = asked.length === 0 ? SCOPES : asked;

      /** The request is read again: another answer may have come meanwhile. */
      const answer = async (change: (code: DeviceCode) => void) => {
        const now = await DeviceCode.findByUserCode(plain);
        if (!isOpen(now)) return false;
        change(now);
        await now.save();
        return true;
      };
      return {
        code: shownCode(plain),
        application: client.clientName ?? client.clientId,
        scopes,
        async approve({ account, scopes: chosen, workspace }) {
          const scope = scopes.filter((one) => chosen.includes(one)).join(" ");
          const grant = new Grant({ accountId: account.id, clientId: client.clientId });
          grant.addResourceScope(issuer, scope);
          const login = await grant.save();
          if (workspace !== undefined) records.upsert(LOGIN_CHOICE, login, { grantId: login, workspace }, undefined);
          const isDone = await answer((open) => {
            Object.assign(open, { accountId: account.id, grantId: login, scope, resource: issuer });
          });
          if (!isDone) records.endLogin(login);
          return isDone;
        },
        deny: () =>
          answer((open) => {
            Object.assign(open, { error: "access_denied", errorDescription: "A person denied it." });
          }),
      };
    },
  };
}
