/** What a kernel and a daemon have agreed on, as the daemon after it finds it. */
export const CONNECTION = {
  minor: 45,
  kernelMinor: 45,
  flags: -1,
  flags2: 32,
  maxWrite: 1 << 20,
  passthrough: true,
  setxattrExtended: true,
  resend: true,
};
