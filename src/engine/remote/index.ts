/** Remote changes come in, by the journal and by lists. Programs that watch files hear of them. */
export { createReplays } from "./changes-to-replay.ts";
export { createFollower } from "./follow.ts";
export { createHearing } from "./hear-journal.ts";
export { createJournalStream, type JournalStream } from "./journal-stream.ts";
export { completeFolder, LIST_STANDS_MS, prefetchListing } from "./listing.ts";
export { pollFolders, visitFolder } from "./poll.ts";
export { withReplays } from "./replayed.ts";
