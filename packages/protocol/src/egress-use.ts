import { z } from "zod";

const count = z.number().int().min(0);

/** Bytes that a job sent and received through its profile's `egress`. */
export const egressUse = z
  .strictObject({
    sentBytes: count,
    receivedBytes: count,
    hosts: z
      .array(
        z.strictObject({
          host: z.string(),
          port: count,
          requests: count,
          denied: count,
          sentBytes: count,
          receivedBytes: count,
        }),
      )
      .readonly()
      .describe("at most 32, by bytes; the sums count all"),
    moreHosts: count.exactOptional().describe("hosts that are not listed"),
    shared: z
      .boolean()
      .describe(
        "another job ran in the sandbox at the time: some of this may be its traffic, counted for both",
      ),
  })
  .describe("what went through the sandbox's egress while the job ran");
export type EgressUse = Readonly<z.infer<typeof egressUse>>;
