/**
 * A program that makes one request to the system keyring: it reads the request as JSON, writes the answer, and ends.
 * keyring.ts starts it.
 */
import { text } from "node:stream/consumers";

export type KeyringRequest =
  | { readonly is: "get" | "remove"; readonly name: string }
  | { readonly is: "set"; readonly name: string; readonly secret: string };

const SERVICE = "wsfs";

async function answer({ name, ...request }: KeyringRequest): Promise<string | null> {
  const { Entry } = await import("@napi-rs/keyring").catch((cause: unknown) => {
    throw new Error("the package @napi-rs/keyring is not installed", { cause });
  });
  // Without this option it would fall back to the kernel's keyring, which is empty after the next boot.
  const entry = new Entry(SERVICE, name, { linux: { store: "secret-service" } });
  if (request.is === "get") return entry.getPassword();
  if (request.is === "set") entry.setPassword(request.secret);
  else if (entry.getPassword() !== null) entry.deletePassword();
  return null;
}

// The request comes through a pipe from the program that started this one.
const request = JSON.parse(await text(process.stdin)) as KeyringRequest;
const said = await answer(request).then(
  (secret) => ({ secret }),
  (error: unknown) => ({ error: error instanceof Error ? error.message : String(error) }),
);
process.stdout.write(JSON.stringify(said));
