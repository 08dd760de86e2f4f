/** Told to the worker as the engine tells such things. 403 is what an operator should look at. */
export class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}
