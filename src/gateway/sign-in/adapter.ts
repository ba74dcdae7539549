/**
 * Stores the records of oidc-provider in accounts.db. It deviates from the expected behaviour once: a refresh token
 * that was used a moment ago does not appear used while its successor is unused (refresh-rotation.ts).
 */
import type { Adapter, AdapterPayload } from "oidc-provider";
import type { OauthRecord, OauthRecords } from "../accounts/index.ts";
import { REFRESH_TOKEN, type RefreshRotation } from "./refresh-rotation.ts";

export function createAdapter(records: OauthRecords, rotation: RefreshRotation): (kind: string) => Adapter {
  return (kind) => {
    const payloadOf = (record: OauthRecord | undefined): AdapterPayload | undefined => {
      if (record === undefined) return undefined;
      return { ...record.payload, ...(record.consumedAt === undefined ? {} : { consumed: record.consumedAt }) };
    };
    return {
      async upsert(id, payload, expiresIn) {
        records.upsert(kind, id, payload as Record<string, unknown>, expiresIn);
      },
      async find(id) {
        const payload = payloadOf(records.find(kind, id));
        if (payload === undefined) return undefined;
        const isFresh = kind === REFRESH_TOKEN && payload.consumed !== undefined && rotation.isRepeatable(id);
        return { ...payload, jti: id, ...(isFresh ? { consumed: undefined } : {}) };
      },
      findByUserCode: async (userCode) => payloadOf(records.findByUserCode(kind, userCode)),
      findByUid: async (uid) => payloadOf(records.findByUid(kind, uid)),
      async consume(id) {
        records.consume(kind, id);
      },
      async destroy(id) {
        records.destroy(kind, id);
      },
      async revokeByGrantId(login) {
        records.endLogin(login);
      },
    };
  };
}
