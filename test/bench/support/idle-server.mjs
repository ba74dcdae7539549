/**
 * An HTTP server that reads what it is sent and answers something of the right size, keeping nothing:
 * what node:http itself takes. Prints its port; ends with its standard input.
 */
import { createServer } from "node:http";

const node = JSON.stringify({ id: "00000000-0000-4000-8000-000000000000", filler: "x".repeat(450) });
const block = Buffer.alloc(512 * 1024, "wsfs ");

/** The size asked for in the path: /v1/nodes/SIZE/content. */
function sendBytes(response, size) {
  response.writeHead(200, { "content-type": "application/octet-stream", "content-length": size });
  let rest = size;
  const send = () => {
    while (rest > 0) {
      const piece = block.subarray(0, rest);
      rest -= piece.length;
      if (!response.write(piece)) return void response.once("drain", send);
    }
    response.end();
  };
  send();
}

const server = createServer((request, response) => {
  request.on("data", () => {});
  request.on("end", () => {
    const size = /^\/v1\/nodes\/(\d+)\/content$/.exec(request.url)?.[1];
    if (size !== undefined) return sendBytes(response, Number(size));
    response.writeHead(200, { "content-type": "application/json", "content-length": node.length });
    response.end(node);
  });
});
server.listen(0, "127.0.0.1", () => process.stdout.write(`${server.address().port}\n`));
process.stdin.on("end", () => process.exit(0)).resume();
