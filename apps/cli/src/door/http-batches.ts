import type { BatchesDoor } from "../door.ts";
import { type BatchView, HttpBatch } from "./http-batch.ts";
import { type HttpCalls, path } from "./http-call.ts";

/** Batches of a gateway. The CLI's name of a batch is its Idempotency-Key. */
export function httpBatches(calls: HttpCalls): BatchesDoor {
  const find = async (id: string) => {
    const query = { key: id };
    return (await calls.json<{ batches: BatchView[] }>("GET", "/v1/batches", { query })).batches[0];
  };
  return {
    run: (given) => HttpBatch.open(calls, given),
    async status(id) {
      const found = await find(id);
      if (!found) return undefined;
      const { submitted, finished, failed, state, total } = found;
      return { submitted, finished, failed, state, ...(total === undefined ? {} : { total }) };
    },
    async cancel(id) {
      const found = await find(id);
      if (!found) return undefined;
      const { submitted: known, finished } = found;
      await calls.json("DELETE", path`/v1/batches/${found.id}`);
      return { known, cancelled: found.state === "finished" ? 0 : known - finished };
    },
  };
}
