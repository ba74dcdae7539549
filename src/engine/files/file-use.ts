/** Opens and writers of a cache file, and the admission of writers. */

/** The use of a file when it is opened: once, without a writer. */
interface FirstUse {
  readonly keepsTimes: boolean;
  readonly preparedTime: string | undefined;
}

export class FileUse {
  #opens = 1;
  #isUsed = false;
  #writers = 0;
  #writersAdmitted = 0;
  #keepsTimes: boolean;
  #preparedTime: string | undefined;
  #preparing: Promise<void> | undefined;

  constructor({ keepsTimes, preparedTime }: FirstUse) {
    this.#keepsTimes = keepsTimes;
    this.#preparedTime = preparedTime;
  }

  /** How many handles and flows have the file open. */
  get opens() {
    return this.#opens;
  }
  /** A program has used the file since it was opened. */
  get isUsed() {
    return this.#isUsed;
  }
  /** How many opens for writing there are. */
  get writers() {
    return this.#writers;
  }
  /** How many writers were admitted since the file was opened. */
  get writersAdmitted() {
    return this.#writersAdmitted;
  }
  /** The mtime of the file itself counts, or would count after a crash. So fetched bytes must not change it. */
  get keepsTimes() {
    return this.#keepsTimes;
  }
  /** The mtime that the file got before its first writer was admitted. */
  get preparedTime() {
    return this.#preparedTime;
  }

  open(): void {
    this.#opens += 1;
  }
  close(): void {
    this.#opens -= 1;
  }
  used(): void {
    this.#isUsed = true;
  }

  /** From here on, fetches do not change the file's times. */
  keepTimes(): void {
    this.#keepsTimes = true;
  }
  prepared(mtime: string): void {
    this.#preparedTime = mtime;
  }
  /** Prepares the file for a writer. Writers that come at the same time share the run. */
  prepareOnce(prepare: () => Promise<void>): Promise<void> {
    this.#preparing ??= prepare().finally(() => {
      this.#preparing = undefined;
    });
    return this.#preparing;
  }
  admitWriter(): void {
    this.#writers += 1;
    this.#writersAdmitted += 1;
  }
  writerLeft(): void {
    this.#writers -= 1;
    if (this.#writers === 0) this.#preparedTime = undefined;
  }

  /** A takeover: the file has as many opens and writers as before. */
  resumed(opens: number, writers: number): void {
    this.#opens = opens;
    this.#writers = writers;
  }
}
