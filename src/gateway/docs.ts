/**
 * The readable page of the OpenAPI document: Swagger UI from its package, nothing from the network. It is made at the
 * first request, so that a gateway starts no slower.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import fastify from "fastify";
import type { OpenApiDocument } from "../contract/openapi.ts";
import { notFound } from "./problems.ts";

const DOCS = "/docs";

/** Only scripts and requests of this origin are allowed, and no other page may show this one in a frame. */
const CONTENT_SECURITY = [
  "default-src 'none'",
  "connect-src 'self'",
  "font-src 'self' data:",
  "img-src 'self' data:",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

export function isDocs(path: string): boolean {
  return path === DOCS || path.startsWith(`${DOCS}/`);
}

/** Answers a request for the page or its parts. Resolves with the status and length of the answer. */
export type Docs = (request: IncomingMessage, response: ServerResponse) => Promise<{ status: number; bytes: number }>;

export function createDocs(document: () => OpenApiDocument): Docs {
  let page: ReturnType<typeof createPage> | undefined;
  return async (request, response) => {
    page ??= createPage(document());
    const { app, lengths } = await page;
    const { socket } = request;
    await new Promise<void>((resolve) => {
      response.once("close", resolve);
      // A response that waits for earlier ones of its connection gets no event when the connection ends.
      if (socket.destroyed) resolve();
      else socket.once("close", resolve);
      app.routing(request, response);
    });
    return { status: response.statusCode, bytes: lengths.get(response) ?? 0 };
  };
}

async function createPage(document: OpenApiDocument) {
  const [{ default: swagger }, { default: swaggerUi }] = await Promise.all([
    import("@fastify/swagger"),
    import("@fastify/swagger-ui"),
  ]);
  const app = fastify({ logger: false });
  const lengths = new WeakMap<ServerResponse, number>();
  app.addHook("onResponse", async (_request, reply) => {
    lengths.set(reply.raw, Number(reply.getHeader("content-length") ?? 0));
  });
  app.setNotFoundHandler((request, reply) => {
    const { status, document: problem } = notFound(`There is nothing at ${request.url}.`);
    void reply.code(status).type("application/problem+json").send(JSON.stringify(problem));
  });
  // The page asks this plugin for its document, but ours is made elsewhere.
  await app.register(swagger);
  await app.register(swaggerUi, {
    routePrefix: DOCS,
    staticCSP: CONTENT_SECURITY,
    transformSpecificationClone: false,
    transformSpecification: () => document,
    uiConfig: { docExpansion: "list", deepLinking: true, defaultModelsExpandDepth: 0, validatorUrl: null },
    theme: { title: document.info.title },
  });
  await app.ready();
  return { app, lengths };
}
