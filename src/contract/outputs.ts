/**
 * The answers of each operation: statuses and their meaning, schemas and headers; its problems; and the request headers
 * that it heeds. Together with inputs.ts this is everything that the OpenAPI document is made of.
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
      "Only if the ETag is still this one, else 412 with the node as it is now. Of a node its revision alone does too; of an upload by path also the head",
    example: '"7"',
  },
  "If-None-Match": {
    description: "Only if there is something else than this ETag; * for anything at all",
    example: "*",
  },
  Range: { description: "One range of bytes; several, or another unit, are answered whole", example: "bytes=0-99" },
  "Last-Event-ID": {
    description: "Go on after this event, as readers of event streams send by themselves; stronger than after=",
    example: "42",
  },
  "If-Range": { description: "The range only if the ETag is still this one, else all of it", example: '"7"' },
} as const;

/** Headers of answers, besides Content-Type and Content-Length. */
export const ANSWER_HEADERS = {
  ETag: "What conditions compare, quoted: of a node its revision and a mark of its id and path, of content the version's id",
  "Accept-Ranges": "bytes",
  "Content-Range": "Which bytes of how many these are; of a range outside only how many there are",
  "WWW-Authenticate": "Bearer",
} as const;

export interface Answer {
  readonly description: string;
  /**
   * A schema: a JSON body. `bytes`: content of any type. `events`: server-sent events without end. `lines`: JSON, a line
   * at a time. Absent: no body.
   */
  readonly body?: z.ZodType | "bytes" | "events" | "lines";
  readonly headers?: readonly (keyof typeof ANSWER_HEADERS)[];
}

/** Refusals; each is a problem document. Those of COMMON_PROBLEMS may come from every operation. */
export const PROBLEMS = {
  400: "Something sent is not what was expected; `field` names it",
  401: "The access token is missing, has expired, or is not one of this gateway's",
  403: "The token lacks the scope that `scope` names; or its account is not what `grant` says in the workspace, or it is bound to another one",
  404: "There is no such thing, or the account has no role where it is",
  409: "The name is taken, or the tree does not allow it: `node` stands in the way, if the token may read it; or a workspace would have no owner left",
  410: "A content of the past, or a deleted node, that the workspace's policy of retention has given up for good (type urn:wsfs:problem:thinned)",
  412: "The condition does not hold; `node` is what is there now, if the token may read it",
  413: "The body or one of its parts is larger than this gateway takes",
  416: "Nothing of the range lies within the content",
  421: "The Host of the request is none of this gateway's names",
  429: "Too much of it waits already; Retry-After says when to come again",
  500: "The gateway failed; nothing was done",
  503: "Too many long lists are being sorted at once; Retry-After says when to come again",
  507: "The gateway has no room left, or (type urn:wsfs:problem:over-quota, with `quota`, `used` and `growth`) the workspace has none; nothing was done, and the same may go well later",
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
          "Lines of JSON. A line {folder, asOf, after} begins children of a folder, in the order of names; a line with a Node follows for each; folders come before those in them. The last line is {complete: true, asOf, count}: an answer without it was cut off, and goes on with the after= of one of its lines",
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
    answers: { 200: { description: "The node as it was deleted", body: toldNode } },
    problems: [404, 409, 412, 507],
    takes: ["If-Match"],
  },
  restoreNode: { answers: { 200: written }, problems: [404, 409, 410, 413, 507], bodyOptional: true },
  restoreTree: {
    answers: { 200: { description: "What was done of it, and where to go on", body: restoredSlice } },
    problems: [404, 409, 410, 413, 507],
  },
  getAccount: { answers: { 200: { description: "Whose the token is", body: accountStatus } }, problems: [] },
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
          "An event for each journal entry, now and as they come: its id is the position, its data a JournalEntry as JSON. A comment at least each 10 seconds",
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
          "An event for each line: its id is the number, its data a LogLine as JSON. A comment at least each 10 seconds. The last event is `end`, its data state, exitCode and detail of the Execution",
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
