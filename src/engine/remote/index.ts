/** Remote changes come in, by the journal and by lists. Programs that watch files hear of them. */
export { createReplays } from "./changes-to-replay.ts";
export { createHearing } from "./hear-journal.ts";
export { createJournalStream } from "./journal-stream.ts";
export { withReplays } from "./replayed.ts";
export { createFollower, createIncoming, type Incoming } from "./services.ts";
