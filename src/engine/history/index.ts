/** The history folder of a mount: every version, every past moment and everything deleted, to be read as files. */
export { HISTORY_FOLDER, historyFolderName, withHistory } from "./file-system.ts";
