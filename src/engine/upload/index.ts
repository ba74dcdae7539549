/** Local changes go out: snapshots, the write-back queue, how many requests at a time. */
export { createOutgoing, type Outgoing } from "./services.ts";
export { createWriteBack, type WriteBack } from "./write-back.ts";
