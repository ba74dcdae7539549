/** The versions of a file. Every write of content makes one. */
import type { Version } from "../../contract/resources.ts";
import { type Context, type RequestOptions, read } from "./context.ts";
import { type Page, type Paged, paged } from "./paged.ts";

export interface VersionListOptions extends RequestOptions {
  /** Only versions that were written on the branch. */
  readonly branch?: string | undefined;
  /** 1..1000; the gateway's default is 50. */
  readonly pageSize?: number | undefined;
  /** A field of the version; `-field` sorts in descending order. Default: number, so that the oldest comes first. */
  readonly orderBy?: string | undefined;
}

export interface VersionsPage extends Page<Version> {
  /** The number of further versions whose content the workspace's retention policy has removed. Absent: none. */
  readonly thinned?: number | undefined;
}

/** Numbers count from 1, sizes are bytes (gateway-spec §3). Scope: node.file.read. */
export interface Versions {
  /** The versions of a file, also of a deleted one. "notFound": there is no such node. */
  list(nodeId: string, options?: VersionListOptions): Paged<Version, VersionsPage>;
}

export function createVersions(context: Context): Versions {
  return {
    list(nodeId, options = {}) {
      const { branch, pageSize, orderBy, signal } = options;
      return paged((which) =>
        read(context, options, (client) =>
          client.listVersions(nodeId, { ...which, branch, pageSize, orderBy, signal }),
        ),
      );
    },
  };
}
