/** Names and addresses in URLs that mean this machine, whatever its resolver says. */

export function isLoopbackName(hostname: string): boolean {
  if (hostname === "localhost" || hostname.endsWith(".localhost")) return true;
  return hostname === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(hostname);
}
