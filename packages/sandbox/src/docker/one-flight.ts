import { abortableWait } from "./abortable-wait.ts";

interface Flight<T> {
  readonly result: Promise<T>;
  readonly controller: AbortController;
  waiting: number;
}

/** Callers that want the same thing at the same time share one attempt and its result. The attempt is aborted when the last of them has gone. */
export class OneFlight<T> {
  readonly #operation: string;
  readonly #flights = new Map<string, Flight<T>>();

  constructor(operation: string) {
    this.#operation = operation;
  }

  async join(
    name: string,
    run: (signal: AbortSignal) => Promise<T>,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    const flight = this.#flights.get(name) ?? this.#begin(name, run);
    flight.waiting++;
    try {
      return await abortableWait(flight.result, signal, this.#operation);
    } finally {
      flight.waiting--;
      if (flight.waiting === 0) {
        if (this.#flights.get(name) === flight) this.#flights.delete(name);
        flight.controller.abort();
      }
    }
  }

  #begin(name: string, run: (signal: AbortSignal) => Promise<T>): Flight<T> {
    const controller = new AbortController();
    const flight = { result: run(controller.signal), controller, waiting: 0 };
    flight.result.catch(() => {});
    this.#flights.set(name, flight);
    return flight;
  }
}
