/** Sent to the worker in the engine's own error format. An operator should look at each 403. */
export class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}
