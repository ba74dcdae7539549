/**
 * The answers of each operation: statuses and their meaning, schemas and headers; its problems; and the request headers
 * that it reads.
 */
import type { z } from "zod";
import { apiKeyPage, createdApiKey } from "./api-keys.ts";
import { engine, enginePage, execution, executionPage, installation, installationPage, logPage } from "./engines.ts";
import type { OperationName } from "./operations.ts";
import {
  accountStatus,
  grant,
  grantPage,
  journalPage,
  node,
  nodePage,
  restoredSlice,
  toldEntry,
  toldNode,
  versionPage,
  workspace,
  workspacePage,
  writtenNode,
} from "./resources.ts";
import { trigger, triggerPage } from "./triggers.ts";

/** Headers of requests, besides Authorization. */
export const REQUEST_HEADERS = {
  "If-Match": {
    description:
      "The change is made only if the ETag is still this one, else 412 with the present node. For a node its revision alone is accepted too; for an upload by path also the head",
    example: '"7"',
  },
  "If-None-Match": {
    description: "The request is done only if the ETag is another one; * stands for any ETag",
    example: "*",
  },
  Range: {
    description: "One range of bytes. For several ranges, or another unit, the answer is the whole content",
    example: "bytes=0-99",
  },
  "Last-Event-ID": {
    description:
      "The last event received: the stream goes on after it. Readers of event streams send it by themselves; it overrides after=",
    example: "42",
  },
  "If-Range": {
    description: "The answer is the range only if the ETag is still this one, else the whole content",
    example: '"7"',
  },
} as const;

/** Headers of answers, besides Content-Type and Content-Length. */
export const ANSWER_HEADERS = {
  ETag: "The value that conditions compare, quoted: for a node its revision and a mark of its id and path, for content the version's id",
  "Accept-Ranges": "bytes",
  "Content-Range": "The range, and the size of the content; for a range outside of the content only the size",
  "WWW-Authenticate": "Bearer",
} as const;

export interface Answer {
  readonly description: string;
  /**
   * A schema: a JSON body. `bytes`: content of any type. `events`: server-sent events without end. `lines`: JSON, a
   * line at a time. Absent: no body.
   */
  readonly body?: z.ZodType | "bytes" | "events" | "lines";
  readonly headers?: readonly (keyof typeof ANSWER_HEADERS)[];
}

/** Refusals; each is a problem document. Those of COMMON_PROBLEMS may come from every operation. */
export const PROBLEMS = {
  400: "A part of the request is not what was expected; `field` names it",
  401: "The access token is missing, has expired, or is not one of this gateway's",
  403: "The token lacks the scope that `scope` names, or its account lacks the role that `grant` names, or it is bound to another workspace",
  404: "It does not exist, or the account has no role in its workspace",
  409: "The name is taken, or the tree does not allow it: `node` stands in the way, if the token may read it; or a workspace would have no owner left",
  410: "The workspace's retention policy has removed this past content, or this deleted node, for good (type urn:wsfs:problem:thinned)",
  412: "The condition does not hold; `node` is the present node, if the token may read it",
  413: "The body or one of its parts is larger than this gateway takes",
  416: "Nothing of the range lies within the content",
  421: "The Host of the request is none of this gateway's names",
  429: "Too many of them wait already; Retry-After says when to try again",
  500: "The gateway failed; nothing was done",
  503: "Too many long lists are being sorted at once; Retry-After says when to try again",
  507: "The gateway has no room left, or (type urn:wsfs:problem:over-quota, with `quota`, `used` and `growth`) the workspace has none; nothing was done, and the same request may succeed later",
} as const;

export type ProblemStatus = keyof typeof PROBLEMS;
export const COMMON_PROBLEMS = [400, 401, 403, 421, 500] as const satisfies readonly ProblemStatus[];

export interface Output {
  readonly answers: Readonly<Record<number, Answer>>;
  /** Problems besides those of COMMON_PROBLEMS. */
  readonly problems: readonly ProblemStatus[];
  /** The JSON body may be left out. */
  readonly bodyOptional?: boolean;
  readonly takes?: readonly (keyof typeof REQUEST_HEADERS)[];
}

const notModified: Answer = { description: "It still has the ETag of If-None-Match", headers: ["ETag"] };
const oneNode: Answer = { description: "The node", body: node, headers: ["ETag"] };
const written: Answer = { description: "The node after the change", body: toldNode };
const writtenVersion: Answer = { description: "The file with its new version", body: toldNode };

export const OUTPUTS = {
  listWorkspaces: { answers: { 200: { description: "A page of workspaces", body: workspacePage } }, problems: [] },
  createWorkspace: { answers: { 201: { description: "The workspace", body: workspace } }, problems: [409, 413, 507] },
  listNodes: { answers: { 200: { description: "A page of nodes", body: nodePage } }, problems: [404, 503] },
  streamNodes: {
    answers: {
      200: {
        description:
          "Lines of JSON. A line {folder, asOf, after} precedes children of a folder; each child is a line with a Node, in the order of names. A folder comes before its children. The last line is {complete: true, asOf, count}. An answer without it was cut off; it goes on with the `after` of one of its lines as after=",
        body: "lines",
      },
    },
    problems: [404, 503],
  },
  getNode: { answers: { 200: oneNode, 304: notModified }, problems: [404], takes: ["If-None-Match"] },
  getNodeByPath: { answers: { 200: oneNode, 304: notModified }, problems: [404], takes: ["If-None-Match"] },
  getContent: {
    answers: {
      200: { description: "All bytes", body: "bytes", headers: ["ETag", "Accept-Ranges"] },
      206: { description: "The range", body: "bytes", headers: ["ETag", "Accept-Ranges", "Content-Range"] },
      304: notModified,
    },
    problems: [404, 410, 416],
    takes: ["Range", "If-Range", "If-None-Match"],
  },
  upload: {
    answers: {
      201: { description: "A new file", body: writtenNode },
      200: { ...writtenVersion, body: writtenNode },
    },
    problems: [404, 409, 412, 413, 507],
    takes: ["If-Match", "If-None-Match"],
  },
  writeContent: { answers: { 200: writtenVersion }, problems: [404, 412, 413, 507], takes: ["If-Match"] },
  writeReference: {
    answers: { 200: { ...writtenVersion, body: writtenNode } },
    problems: [404, 410, 412, 413, 507],
    takes: ["If-Match"],
  },
  createNode: { answers: { 201: { description: "A new node", body: toldNode } }, problems: [404, 409, 410, 413, 507] },
  patchNode: { answers: { 200: written }, problems: [404, 409, 412, 413, 507], takes: ["If-Match"] },
  exchangeNodes: { answers: { 200: written }, problems: [404, 412, 413, 507], takes: ["If-Match"] },
  deleteNode: {
    answers: { 200: { description: "The deleted node, in its last state", body: toldNode } },
    problems: [404, 409, 412, 507],
    takes: ["If-Match"],
  },
  restoreNode: { answers: { 200: written }, problems: [404, 409, 410, 413, 507], bodyOptional: true },
  restoreTree: {
    answers: { 200: { description: "The part that was done, and where to go on", body: restoredSlice } },
    problems: [404, 409, 410, 413, 507],
  },
  getAccount: {
    answers: { 200: { description: "The account, scopes and workspaces of the token", body: accountStatus } },
    problems: [],
  },
  listGrants: { answers: { 200: { description: "A page of grants", body: grantPage } }, problems: [404] },
  setGrant: { answers: { 200: { description: "The grant", body: grant } }, problems: [404, 409, 413] },
  removeGrant: { answers: { 204: { description: "It is gone" } }, problems: [404, 409] },
  listVersions: { answers: { 200: { description: "A page of versions", body: versionPage } }, problems: [404, 503] },
  appendJournal: {
    answers: { 201: { description: "The journal entry", body: toldEntry } },
    problems: [404, 413, 507],
  },
  readJournal: {
    answers: { 200: { description: "A page of journal entries", body: journalPage } },
    problems: [404, 503],
  },
  streamJournal: {
    answers: {
      200: {
        description:
          "An event for each journal entry, existing and new: its id is the position, its data a JournalEntry as JSON. A comment at least every 10 seconds",
        body: "events",
      },
    },
    problems: [404],
    takes: ["Last-Event-ID"],
  },
  listEngines: { answers: { 200: { description: "A page of engines", body: enginePage } }, problems: [] },
  getEngine: { answers: { 200: { description: "The engine", body: engine } }, problems: [404] },
  createInstallation: {
    answers: { 201: { description: "The installation", body: installation } },
    problems: [404, 409, 413, 507],
  },
  listInstallations: {
    answers: { 200: { description: "A page of installations", body: installationPage } },
    problems: [404],
  },
  getInstallation: { answers: { 200: { description: "The installation", body: installation } }, problems: [404] },
  removeInstallation: { answers: { 204: { description: "It is gone" } }, problems: [404, 507] },
  startExecution: {
    answers: { 201: { description: "The execution, queued", body: execution } },
    problems: [404, 409, 413, 429, 507],
  },
  listExecutions: { answers: { 200: { description: "A page of executions", body: executionPage } }, problems: [404] },
  getExecution: { answers: { 200: { description: "The execution", body: execution } }, problems: [404] },
  cancelExecution: {
    answers: {
      200: { description: "The execution; one that ran is cancelled once its processes are gone", body: execution },
    },
    problems: [404, 507],
  },
  readLogs: { answers: { 200: { description: "A page of lines", body: logPage } }, problems: [404] },
  streamLogs: {
    answers: {
      200: {
        description:
          "An event for each line: its id is the number, its data a LogLine as JSON. A comment at least every 10 seconds. The last event is `end`, its data state, exitCode and detail of the Execution",
        body: "events",
      },
    },
    problems: [404],
    takes: ["Last-Event-ID"],
  },
  createApiKey: { answers: { 201: { description: "The key", body: createdApiKey } }, problems: [404, 413] },
  listApiKeys: { answers: { 200: { description: "A page of API keys", body: apiKeyPage } }, problems: [404] },
  revokeApiKey: { answers: { 204: { description: "It is gone" } }, problems: [404] },
  createTrigger: { answers: { 201: { description: "The trigger", body: trigger } }, problems: [404, 409, 413, 507] },
  listTriggers: { answers: { 200: { description: "A page of triggers", body: triggerPage } }, problems: [404] },
  getTrigger: { answers: { 200: { description: "The trigger", body: trigger } }, problems: [404] },
  updateTrigger: { answers: { 200: { description: "The trigger", body: trigger } }, problems: [404, 409, 413, 507] },
  removeTrigger: { answers: { 204: { description: "It is gone" } }, problems: [404, 507] },
} as const satisfies Record<OperationName, Output>;
