/** The names and addresses in URLs that always mean this machine, independent of its resolver. */

export function isLoopbackName(hostname: string): boolean {
  if (hostname === "localhost" || hostname.endsWith(".localhost")) return true;
  return hostname === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(hostname);
}
