/** Triggers and schedules as schemas. gateway-spec §6 says that they exist; their fields are our own. */
import { z } from "zod";
import { engineInput } from "./engines.ts";
import { author, count, engineRef, id, idempotencyKey, moment, page, workspaceRef } from "./resources.ts";

const onJournal = z.strictObject({
  journal: z.strictObject({
    kinds: z
      .array(z.string().min(1).max(64))
      .min(1)
      .max(32)
      .optional()
      .describe(
        "Any of these kinds; when absent, every kind except those of executions (execution.…), which must be named",
      ),
    path: z
      .string()
      .min(1)
      .max(1024)
      .optional()
      .describe(
        'A pattern of the node\'s path at that time, like "/inbox/**" or "/**/*.pdf": * is any part of a name, ? one character, ** any number of names, and \\ makes the next character literal. Every path when absent',
      ),
  }),
});
const onSchedule = z.strictObject({
  schedule: z.strictObject({
    cron: z.string().min(1).max(200).describe("Five fields: minute, hour, day of the month, month, day of the week"),
    timeZone: z.string().min(1).max(64).optional().describe('Such as "Europe/Berlin"; UTC when absent'),
  }),
});
/** Exactly one of the two. */
export const triggerCondition = z
  .union([onJournal, onSchedule])
  .describe(
    "When it starts the engine: for each journal entry of a kind and place, or at the times of a cron expression",
  );
export type TriggerCondition = z.infer<typeof triggerCondition>;

export const trigger = z
  .object({
    id,
    name: z.string().describe("Unique in the workspace"),
    workspace: workspaceRef,
    engine: engineRef,
    on: triggerCondition,
    input: z.unknown(),
    isEnabled: z.boolean().describe("Of a journal: entries that come while it is off are passed over"),
    createdAt: moment,
    by: author
      .nullable()
      .describe("The author of its last change, for whose account its executions run; null: no account"),
    lastExecutionId: id.nullable(),
    nextAt: moment
      .nullable()
      .describe("Of a schedule: the next time it starts; of any trigger that failed: the time of its next try"),
    failures: count.describe(
      "The number of failures since an execution last succeeded: starts that failed, and executions that did",
    ),
    detail: z.string().nullable().describe("The last failure, for people; null: none"),
  })
  .meta({ id: "Trigger", description: "Starts an engine when something happens, or at set times" });
export type Trigger = z.infer<typeof trigger>;
export const triggerPage = page(trigger).meta({ id: "TriggerPage" });
export type TriggerPage = z.infer<typeof triggerPage>;

export const newTrigger = z
  .strictObject({
    name: z.string().min(1).max(128),
    engine: z.string().min(1).max(128).describe("Name or id of an engine that is installed in the workspace"),
    on: triggerCondition,
    input: engineInput.optional(),
    isEnabled: z.boolean().optional().describe("true when absent"),
    idempotencyKey: idempotencyKey.nullish(),
  })
  .meta({ id: "NewTrigger", description: "The condition, the engine and its input" });
export type NewTrigger = z.infer<typeof newTrigger>;

export const triggerPatch = z
  .strictObject({ isEnabled: z.boolean().optional(), on: triggerCondition.optional(), input: engineInput.optional() })
  .meta({ id: "TriggerPatch", description: "The changes of a trigger" });
export type TriggerPatch = z.infer<typeof triggerPatch>;
