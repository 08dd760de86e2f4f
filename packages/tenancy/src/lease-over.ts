/**
 * init refused the last call: as far as it knows, the worker's lease is over. `touched`: an earlier call of the same job may have
 * changed something.
 */
export class LeaseOver extends Error {
  override readonly name = "LeaseOver";
  readonly touched: boolean;

  constructor(touched: boolean) {
    super("init refused the call: as far as it knows, the worker's lease is over");
    this.touched = touched;
  }
}
