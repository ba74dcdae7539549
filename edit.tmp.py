def edit(p, *pairs):
    s=open(p).read()
    for a,b in pairs:
        assert a in s, (p,a)
        s=s.replace(a,b,1)
    open(p,'w').write(s)
edit('src/contract/inputs.ts',
 ('''.default(1).meta({ default: 1, description: "Which page, from 1" })''','''.default(1).describe("Which page; 1 when absent")'''),
 ('''.meta({ default: PAGE_SIZE_DEFAULT, description: "How many items a page has at most" })''','''.describe(`How many items a page has at most; ${PAGE_SIZE_DEFAULT} when absent`)'''),
 ('''.meta({ default: 0, description: "A position: only what came after it" })''','''.describe("A position: only what came after it; from the start when absent")'''),
)
edit('src/contract/openapi.ts',
('''function schemaOf(components: Components, schema: z.ZodType, io: "input" | "output"): JsonObject {
''','''const PROBLEM_TYPE = "application/problem+json";

function schemaOf(components: Components, schema: z.ZodType, io: "input" | "output"): JsonObject {
'''),
('''function problemOf(components: Components, status: ProblemStatus): JsonObject {
  return {
    description: PROBLEMS[status],
    content: { "application/problem+json": { schema: schemaOf(components, problem, "output") } },
    ...answerHeaders(HEADERS_OF_PROBLEMS[status] ?? []),
  };
}
''','''function problemsOf(components: Components): Readonly<Record<ProblemStatus, JsonObject>> {
  const content = { [PROBLEM_TYPE]: { schema: schemaOf(components, problem, "output") } };
  const entries = Object.entries(PROBLEMS).map(([status, description]) => [
    status,
    { description, content, ...answerHeaders(HEADERS_OF_PROBLEMS[Number(status) as ProblemStatus] ?? []) },
  ]);
  return Object.fromEntries(entries);
}
'''),
)
