/** Engines and their installations in workspaces. */
import type { Engine, Installation } from "../../contract/engines.ts";
import { type Context, type RequestOptions, read, removed, type WriteOptions, write } from "./context.ts";
import { type Paged, paged } from "./paged.ts";

export interface EngineListOptions extends RequestOptions {
  /** 1..1000; the gateway's default is 50. */
  readonly pageSize?: number | undefined;
  /** A field of the engine; `-field` sorts in descending order. Default: name. */
  readonly orderBy?: string | undefined;
}

export interface InstallationListOptions extends RequestOptions {
  /** 1..1000; the gateway's default is 50. */
  readonly pageSize?: number | undefined;
  /** Name or id. Default: that of `connect`. */
  readonly workspace?: string | undefined;
}

export interface InstallOptions extends WriteOptions {
  /** Name or id. Default: that of `connect`. */
  readonly workspace?: string | undefined;
  /** Path of its folder. Default: "/Engines/NAME". */
  readonly path?: string | undefined;
}

/** Programs that the gateway's owner has registered. Scope: execution.execution.run. */
export interface Engines {
  /** All engines, installed or not. */
  list(options?: EngineListOptions): Paged<Engine>;
  /** By id or name. "notFound": there is no such engine. */
  get(engine: string, options?: RequestOptions): Promise<Engine>;
}

export interface Installations {
  /**
   * Installs an engine (name or id) and makes its folder. "notFound": there is no such engine. "conflict": it is
   * installed already, or a name on the folder's path is a file. "invalid" (field "path"): the path is the root or no
   * path. "forbidden": not an owner. Scopes: marketplace.install.create, node.node.create.
   */
  create(engine: string, options?: InstallOptions): Promise<Installation>;
  /** The installations of a workspace. Scope: marketplace.install.read. */
  list(options?: InstallationListOptions): Paged<Installation>;
  /** "notFound": there is no such installation. Scope: marketplace.install.read. */
  get(installationId: string, options?: RequestOptions): Promise<Installation>;
  /**
   * Removes an installation; its folder stays. "notFound": there is no such installation. "forbidden": not an owner.
   * Scope: marketplace.install.delete.
   */
  remove(installationId: string, options?: RequestOptions): Promise<void>;
}

export function createEngines(context: Context): Engines {
  return {
    list(options = {}) {
      const { pageSize, orderBy, signal } = options;
      return paged((which) =>
        read(context, options, (client) => client.listEngines({ ...which, pageSize, orderBy, signal })),
      );
    },
    get: (engine, options = {}) => read(context, options, (client) => client.getEngine(engine, options)),
  };
}

export function createInstallations(context: Context): Installations {
  return {
    create(engine, options = {}) {
      const { workspace = context.workspace, path, signal } = options;
      return write(context, "change", options, (client, idempotencyKey) =>
        client.createInstallation(engine, { workspace, path, idempotencyKey, signal }),
      );
    },
    list(options = {}) {
      const { workspace = context.workspace, pageSize, signal } = options;
      return paged((which) =>
        read(context, options, (client) => client.listInstallations({ ...which, workspace, pageSize, signal })),
      );
    },
    get: (installationId, options = {}) =>
      read(context, options, (client) => client.getInstallation(installationId, options)),
    remove: (installationId, options = {}) =>
      removed(context, options, (client) => client.removeInstallation(installationId, options)),
  };
}
