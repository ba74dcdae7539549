/** Names and inodes: which node a name carries, who owns a file, what its attributes are. */
export { createForgetting, dropRow } from "./abandoned-requests.ts";
export { VALUE_BYTES_MAX, withinLimits } from "./attribute-limits.ts";
export { contentOfNode, folderOfNode, groupOf, makeInodeOf, savesOfNode } from "./from-node.ts";
export { isLike, keepInOthers, rowsOfInode } from "./hard-links.ts";
export { isInside } from "./is-inside.ts";
export {
  addName,
  askForUndeletable,
  createUnborn,
  exchangeNames,
  giveUndeletable,
  inodeOfRow,
  isBeingDeleted,
  makeFolder,
  mayLeaveNode,
  moveName,
  nodeIdOfFolder,
  removeName,
  replaceTarget,
  rowOfFolder,
} from "./names.ts";
export { type Account, accountOf, chowned, madeBy, makerOf } from "./owners.ts";
export {
  attributed,
  EMPTY_HASH,
  fileTimeText,
  folderOf,
  found,
  inodeOf,
  isoToTimeText,
  kindOf,
  now,
  requireNamed,
  requireWritable,
  validMs,
} from "./stat.ts";
