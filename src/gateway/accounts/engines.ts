/**
 * The engines that the gateway's owner has registered. An engine never changes, so it can be cached by its id. Other
 * processes may add and remove engines at any time.
 */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { type Connection, SqliteError } from "../../lib/sqlite/index.ts";
import { isUuid } from "../../lib/uuid.ts";

export interface NewEngine {
  readonly name: string;
  readonly description: string;
  /** The program and its arguments. */
  readonly command: readonly string[];
  readonly timeLimitSeconds: number;
  /** The scopes of the token of its executions. */
  readonly scopes: readonly string[];
  /** A JSON Schema. Null: it accepts any JSON. */
  readonly inputSchema: Readonly<Record<string, unknown>> | null;
}

export interface EngineEntry extends NewEngine {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
}

export interface Engines {
  /** Throws an EngineError when the name is taken or invalid. */
  add(engine: NewEngine): EngineEntry;
  /** Ordered by name. */
  list(): EngineEntry[];
  find(nameOrId: string): EngineEntry | undefined;
  /** False: there is none. */
  remove(id: string): boolean;
}

/** The owner's request cannot be fulfilled. The message is one line for a person. */
export class EngineError extends Error {
  override readonly name = "EngineError";
}

/** Names that can be used in a folder, a command line and a URL. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

const text = z.string().transform((json): unknown => JSON.parse(json));
const row = z
  .object({
    id: z.string(),
    name: z.string(),
    description: z.string(),
    command: text.pipe(z.array(z.string()).min(1)),
    timeLimit: z.number(),
    scopes: text.pipe(z.array(z.string())),
    inputSchema: text.pipe(z.record(z.string(), z.unknown())).nullable(),
    createdAt: z.number(),
  })
  .transform(({ timeLimit: timeLimitSeconds, ...rest }): EngineEntry => ({ ...rest, timeLimitSeconds }));

const COLUMNS = `id, name, description, command, time_limit AS timeLimit, scopes, input_schema AS inputSchema,
  created_at AS createdAt`;

export function createEngines(database: Connection, clock: { wallClock(): number }): Engines {
  const insert = database.prepare(
    `INSERT INTO engine (id, name, description, command, time_limit, scopes, input_schema, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const all = database.prepare(`SELECT ${COLUMNS} FROM engine ORDER BY name`);
  const byName = database.prepare(`SELECT ${COLUMNS} FROM engine WHERE name = ?`);
  const byId = database.prepare(`SELECT ${COLUMNS} FROM engine WHERE id = ?`);
  const removeRow = database.prepare("DELETE FROM engine WHERE id = ?");
  const shown = (found: unknown) => (found === undefined ? undefined : row.parse(found));
  return {
    add(engine) {
      const { name, description, command, timeLimitSeconds, scopes, inputSchema } = engine;
      if (!NAME.test(name) || isUuid(name)) {
        throw new EngineError(
          `an engine's name has 1 to 64 letters of ASCII, digits and . _ - inside, and is no id; got ${JSON.stringify(name)}`,
        );
      }
      const id = randomUUID();
      const createdAt = Math.floor(clock.wallClock());
      const schema = inputSchema === null ? null : JSON.stringify(inputSchema);
      const lists = [JSON.stringify(command), timeLimitSeconds, JSON.stringify(scopes)];
      try {
        insert.run(id, name, description, ...lists, schema, createdAt);
      } catch (error) {
        if (error instanceof SqliteError && error.code === "SQLITE_CONSTRAINT_UNIQUE") {
          throw new EngineError(`there is an engine ${name} already; it is changed by removing it first`, {
            cause: error,
          });
        }
        throw error;
      }
      return { ...engine, id, createdAt };
    },
    list: () => all.all().map((found) => row.parse(found)),
    find: (nameOrId) => shown(byName.get(nameOrId) ?? byId.get(nameOrId)),
    remove: (id) => removeRow.run(id).changes > 0,
  };
}
