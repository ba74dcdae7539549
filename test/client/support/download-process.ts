/** Downloads n1 of the gateway at the first argument to the second, and says when 2000 bytes are on the disk. */
import { connect } from "../../../src/client/connect.ts";
import { staticToken } from "../../../src/client/credentials.ts";

const [baseUrl = "", path = ""] = process.argv.slice(2);
const gateway = connect({ baseUrl, credentials: staticToken("token") });
await gateway.files.download("n1", path, {
  onProgress(written) {
    if (written === 2000) process.stdout.write("2000\n");
  },
});
