/** Refused before it reached the queue, with every problem named. */
export class InvalidJob extends Error {
  override readonly name = "InvalidJob";
  readonly code = "invalid-job";
  readonly retry = false;
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`invalid job: ${problems.join("; ")}`);
    this.problems = problems;
  }
}
