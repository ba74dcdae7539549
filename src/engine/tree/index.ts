/** Names and inodes: the node of a name, owners and attributes. */
export { createForgetting } from "./abandoned-requests.ts";
export { isLike } from "./hard-links.ts";
export type { Account } from "./owners.ts";
export { createTree, type Tree } from "./services.ts";
