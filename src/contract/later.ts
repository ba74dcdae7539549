/**
 * Resources of the service (gateway-spec §4) that the gateway does not serve yet. Their place is
 * kept: whatever is asked below these paths is answered with a 404 that says so, and an operation
 * in operations.ts takes its path from here.
 */
export const LATER = [
  { path: "/v1/engines", what: "engines" },
  { path: "/v1/installations", what: "installations" },
  { path: "/v1/executions", what: "executions" },
  { path: "/v1/api-keys", what: "API keys" },
] as const;
