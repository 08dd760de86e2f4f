/**
 * Keeps the jobs of a session in order while sessions run side by side. A job whose session is busy is parked: it takes
 * none of the places that run.
 */
export class Sessions<J> {
  readonly #parallel: number;
  readonly #sessionOf: (job: J) => string;
  readonly #busy = new Set<string>();
  #parked: J[] = [];

  constructor(parallel: number, sessionOf: (job: J) => string) {
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
  get hasPlace(): boolean {
    return this.#busy.size < this.#parallel;
  }

  /** Of the jobs that run or are parked. */
  get names(): ReadonlySet<string> {
    return new Set([...this.#busy, ...this.#parked.map(this.#sessionOf)]);
  }

  /** In order of arrival. */
  add(job: J): void {
    this.#parked.push(job);
  }

  /** The first job that may begin now, if any; its session is busy until `done`. */
  take(): J | undefined {
    if (!this.hasPlace) return undefined;
    const index = this.#parked.findIndex((job) => !this.#busy.has(this.#sessionOf(job)));
    if (index < 0) return undefined;
    const [job] = this.#parked.splice(index, 1);
    if (job === undefined) return undefined;
    this.#busy.add(this.#sessionOf(job));
    return job;
  }

  done(job: J): void {
    this.#busy.delete(this.#sessionOf(job));
  }

  /** Takes a job that has not begun out of the line. */
  remove(wanted: (job: J) => boolean): J | undefined {
    const index = this.#parked.findIndex(wanted);
    return index < 0 ? undefined : this.#parked.splice(index, 1)[0];
  }

  /** Everything that has not begun, in order; nothing is parked afterwards. */
  empty(): J[] {
    const parked = this.#parked;
    this.#parked = [];
    return parked;
  }
}
