/** Triggers and schedules of a workspace, which start engines automatically. */
import type { Trigger, TriggerPatch } from "../../contract/triggers.ts";
import type { TriggerDescription } from "../client.ts";
import { type Context, type RequestOptions, read, removed, type WriteOptions, write } from "./context.ts";
import { type Paged, paged } from "./paged.ts";

export interface NewTriggerOptions extends WriteOptions {
  /** Name or id. Default: that of `connect`. */
  readonly workspace?: string | undefined;
}

export interface TriggerListOptions extends RequestOptions {
  /** Name or id. Default: that of `connect`. */
  readonly workspace?: string | undefined;
  /** 1..1000; the gateway's default is 50. */
  readonly pageSize?: number | undefined;
}

/** Each entry or time starts one execution. It may happen twice, so an engine must do no harm when it runs twice. */
export interface Triggers {
  /**
   * Creates a trigger. "notFound": there is no such engine. "conflict": the name is taken, or the engine is not
   * installed. "invalid": the condition is wrong, or the engine does not accept the input. "tooLarge": the input has
   * more than 64 KiB. "forbidden": not an owner. Scope: execution.trigger.create.
   */
  create(description: TriggerDescription, options?: NewTriggerOptions): Promise<Trigger>;
  /** The triggers of a workspace. Scope: execution.trigger.read. */
  list(options?: TriggerListOptions): Paged<Trigger>;
  /** "notFound": there is no such trigger. Scope: execution.trigger.read. */
  get(triggerId: string, options?: RequestOptions): Promise<Trigger>;
  /**
   * Changes a trigger; other fields stay. "notFound": there is no such trigger. "invalid" and "tooLarge" as for
   * `create`. "conflict": a new input is given and the engine is not installed any more. "forbidden": not an owner.
   * Scope: execution.trigger.update.
   */
  update(triggerId: string, patch: TriggerPatch, options?: RequestOptions): Promise<Trigger>;
  /**
   * Removes a trigger; executions that it started go on. "notFound": there is no such trigger. "forbidden": not an
   * owner. Scope: execution.trigger.delete.
   */
  remove(triggerId: string, options?: RequestOptions): Promise<void>;
}

export function createTriggers(context: Context): Triggers {
  return {
    create(description, options = {}) {
      const { workspace = context.workspace, signal } = options;
      return write(context, "change", options, (client, idempotencyKey) =>
        client.createTrigger(description, { workspace, idempotencyKey, signal }),
      );
    },
    list(options = {}) {
      const { workspace = context.workspace, pageSize, signal } = options;
      return paged((which) =>
        read(context, options, (client) => client.listTriggers({ ...which, workspace, pageSize, signal })),
      );
    },
    get: (triggerId, options = {}) => read(context, options, (client) => client.getTrigger(triggerId, options)),
    // Repeated, it has the same result, so it is retried like a read.
    update: (triggerId, patch, options = {}) =>
      read(context, options, (client) => client.updateTrigger(triggerId, patch, options)),
    remove: (triggerId, options = {}) =>
      removed(context, options, (client) => client.removeTrigger(triggerId, options)),
  };
}
