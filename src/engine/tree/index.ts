/** Names and inodes: which node a name carries, who owns a file, what its attributes are. */
export { createForgetting } from "./abandoned-requests.ts";
export { isLike } from "./hard-links.ts";
export type { Account } from "./owners.ts";
export { createTree, type Tree } from "./services.ts";
