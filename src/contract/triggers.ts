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
        "Any of these; when absent every kind but those that tell of executions (execution.…), which are meant by name only",
      ),
    path: z
      .string()
      .min(1)
      .max(1024)
      .optional()
      .describe(
        'A pattern of the node\'s path at that time, like "/inbox/**" or "/**/*.pdf": * is any part of a name, ? one character, ** any number of names, and \\ takes what follows it as it is. Every path when absent',
      ),
  }),
});
const onSchedule = z.strictObject({
  schedule: z.strictObject({
    cron: z.string().min(1).max(200).describe("Five fields: minute, hour, day of the month, month, day of the week"),
    timeZone: z.string().min(1).max(64).optional().describe('As "Europe/Berlin"; UTC when absent'),
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
    isEnabled: z.boolean().describe("Of a journal: what comes while it is not is passed over"),
    createdAt: moment,
    by: author.nullable().describe("Who changed it last, whose account its executions run for; null: of no account"),
    lastExecutionId: id.nullable(),
    nextAt: moment.nullable().describe("Of a schedule: when it starts next; of any that failed: when it tries again"),
    failures: count.describe(
      "How often it failed to start its engine since it last did, or the executions that it started",
    ),
    detail: z.string().nullable().describe("What went wrong last, for people; null: nothing"),
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
  .meta({ id: "NewTrigger", description: "When which engine is to run, and on what input" });
export type NewTrigger = z.infer<typeof newTrigger>;

export const triggerPatch = z
  .strictObject({ isEnabled: z.boolean().optional(), on: triggerCondition.optional(), input: engineInput.optional() })
  .meta({ id: "TriggerPatch", description: "What is to be another" });
export type TriggerPatch = z.infer<typeof triggerPatch>;
