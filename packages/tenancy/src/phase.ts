/** Why a tenancy gives its sandbox up, by increasing weight: a worker that stops may leave the container to its next process. */
const yieldReasons = ["asked", "no-sandbox", "worker-stops"] as const;
export type YieldReason = (typeof yieldReasons)[number];

export type PhaseName = "holding" | "yielding" | "over";

/**
 * Where a tenancy is.
 *
 *   holding ──▶ yielding ──▶ over
 *      └───────────────────────▲
 *
 * It never goes back. A weightier reason to yield replaces a lighter one, and is kept when the phase is over.
 */
export class Phase {
  readonly #onChange: () => void;
  #name: PhaseName = "holding";
  #because: YieldReason | undefined;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  get name(): PhaseName {
    return this.#name;
  }

  /** Why it yields, or has yielded. */
  get because(): YieldReason | undefined {
    return this.#because;
  }

  yield(because: YieldReason): void {
    if (this.#name === "over") return;
    const isWeightier =
      this.#because === undefined || yieldReasons.indexOf(because) > yieldReasons.indexOf(this.#because);
    if (isWeightier) this.#enter("yielding", because);
  }

  end(): void {
    this.#enter("over", this.#because);
  }

  #enter(name: PhaseName, because: YieldReason | undefined): void {
    this.#name = name;
    this.#because = because;
    this.#onChange();
  }
}
