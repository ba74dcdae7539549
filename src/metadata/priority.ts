/** The priority class of a row that waits. bulk: it has much to send. */
export type Priority = "small" | "bulk";

export const PRIORITIES: readonly Priority[] = ["small", "bulk"];

/** Values of the column `bulk`. */
const COLUMN = { small: 0, bulk: 1 } as const;
export type PriorityColumn = (typeof COLUMN)[Priority];

export const decodePriority = (column: PriorityColumn): Priority => (column === COLUMN.bulk ? "bulk" : "small");
export const encodePriority = (priority: Priority): PriorityColumn => COLUMN[priority];
