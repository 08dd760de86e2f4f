/**
 * Keeps the jobs of a session in order while sessions run side by side. A job whose session is busy is parked, and
 * does not count as running.
 */
export class Sessions<J> {
  readonly #parallel: () => number;
  readonly #sessionOf: (job: J) => string;
  /** The job that runs, by session. */
  readonly #busy = new Map<string, J>();
  #parked: J[] = [];

  /** Calls `parallel` each time, since a profile can change. */
  constructor(parallel: () => number, sessionOf: (job: J) => string) {
    this.#parallel = parallel;
    this.#sessionOf = sessionOf;
  }

  get running(): number {
    return this.#busy.size;
  }

  get parked(): number {
    return this.#parked.length;
  }

  get waiting(): readonly J[] {
    return this.#parked;
  }

  /** Whether another session's job could begin now. */
  get hasCapacity(): boolean {
    return this.#busy.size < this.#parallel();
  }

  /** The sessions with a running or a parked job. */
  get names(): ReadonlySet<string> {
    return new Set([...this.#busy.keys(), ...this.#parked.map(this.#sessionOf)]);
  }

  /** Parks a job behind the others. */
  add(job: J): void {
    this.#parked.push(job);
  }

  /** The first job that may begin now, if any; its session is busy until `done`. */
  take(): J | undefined {
    if (!this.hasCapacity) return undefined;
    const index = this.#parked.findIndex((job) => !this.#busy.has(this.#sessionOf(job)));
    if (index < 0) return undefined;
    const [job] = this.#parked.splice(index, 1);
    if (job === undefined) return undefined;
    this.#busy.set(this.#sessionOf(job), job);
    return job;
  }

  /** The next job of the same session, if `take` would return it once this job is done. */
  successorOf(job: J): J | undefined {
    const session = this.#sessionOf(job);
    if (this.#busy.get(session) !== job || this.#busy.size > this.#parallel()) return undefined;
    const isFree = (one: string) => one === session || !this.#busy.has(one);
    const next = this.#parked.find((one) => isFree(this.#sessionOf(one)));
    return next !== undefined && this.#sessionOf(next) === session ? next : undefined;
  }

  /** Starts the successor: the next job of the session. The session is never free in between. */
  beginSuccessor(successor: J): void {
    this.remove((one) => one === successor);
    this.#busy.set(this.#sessionOf(successor), successor);
  }

  done(job: J): void {
    const session = this.#sessionOf(job);
    if (this.#busy.get(session) === job) this.#busy.delete(session);
  }

  /** Takes a job that has not begun out of the line. */
  remove(wanted: (job: J) => boolean): J | undefined {
    const index = this.#parked.findIndex(wanted);
    return index < 0 ? undefined : this.#parked.splice(index, 1)[0];
  }

  /** Removes and returns all parked jobs, in order. */
  empty(): J[] {
    const parked = this.#parked;
    this.#parked = [];
    return parked;
  }
}
