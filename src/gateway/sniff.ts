/** The MIME type of content that came without one, by its first bytes. */
import { isUtf8 } from "node:buffer";
import { fileTypeFromBuffer } from "file-type";

/** The number of bytes at the beginning that are looked at. */
export const SNIFF_BYTES = 4096;

const UNKNOWN = "application/octet-stream";

/** `beginning`: the first SNIFF_BYTES of the content, or all of it when it is shorter. */
async function sniffMimeType(beginning: Uint8Array): Promise<string> {
  if (beginning.length === 0) return "text/plain";
  const known = await fileTypeFromBuffer(beginning);
  if (known !== undefined) return known.mime;
  return isText(beginning) ? "text/plain" : UNKNOWN;
}

function isText(bytes: Uint8Array): boolean {
  if (bytes.includes(0)) return false;
  if (isUtf8(bytes)) return true;
  // The cut may have divided a character of up to four bytes.
  if (bytes.length < SNIFF_BYTES) return false;
  return [1, 2, 3].some((cut) => isUtf8(bytes.subarray(0, bytes.length - cut)));
}

/** A type with its parameters, in characters that are valid in a header when the content is read. */
const MIME_TYPE = /^([\w!#$&^.+-]{1,127}\/[\w!#$&^.+-]{1,127})(?:[ \t]*;[\x20-\x7e]{0,255})?$/;

/** Returns the uploader's own type, unless it is empty, invalid or unspecific. */
export async function mimeTypeOf(sent: string | undefined, beginning: Uint8Array): Promise<string> {
  const given = sent?.trim() ?? "";
  const essence = MIME_TYPE.exec(given)?.[1]?.toLowerCase() ?? UNKNOWN;
  return essence === UNKNOWN ? sniffMimeType(beginning) : given;
}
