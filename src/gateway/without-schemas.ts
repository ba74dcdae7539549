/**
 * The option of a fastify app whose routes have no JSON schemas, because their handlers check what comes in. An app
 * without this option loads two compilers of schemas, which is a fifth of the work when a gateway starts.
 */
export const WITHOUT_SCHEMAS = { compilersFactory: { buildValidator: refuse, buildSerializer: refuse } };

function refuse(): never {
  throw new Error("a route with a JSON schema needs the compilers of fastify");
}
