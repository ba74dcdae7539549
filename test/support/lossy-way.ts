/** A way to a gateway that loses answers. */
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished, type TestContext } from "vitest";

/**
 * `isLost` says of which requests the answer is lost. For short bodies that are text. Ends with the test; one that runs
 * at the same time as others gives its own `atEnd`.
 */
export async function lossyWay(
  baseUrl: string,
  isLost: (path: string) => boolean,
  atEnd: TestContext["onTestFinished"] = onTestFinished,
): Promise<string> {
  const forward: RequestListener = async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { host: _, ...headers } = request.headers;
    const body = chunks.length === 0 ? {} : { body: Buffer.concat(chunks) };
    const answer = await fetch(`${baseUrl}${request.url}`, {
      method: request.method ?? "GET",
      headers: headers as Record<string, string>,
      ...body,
    });
    const text = await answer.text();
    if (isLost(request.url ?? "")) return void request.socket.destroy();
    response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" }).end(text);
  };
  const server = createServer((request, response) => void forward(request, response));
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  atEnd(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
