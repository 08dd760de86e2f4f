import type { redisKeys } from "@berth/protocol";
import { approvalRecords } from "./approvals/records.ts";
import { artifactRecords } from "./artifacts/records.ts";
import { batchRecords } from "./batches/records.ts";
import { deadLetterRecords } from "./dead-letters/records.ts";
import { egressRecords } from "./egress/records.ts";
import { eventRecords } from "./events/records.ts";
import { fleetRecords } from "./fleet/records.ts";
import { gatewayRecords } from "./gateway/records.ts";
import { jobRecords } from "./jobs/records.ts";
import type { KeyRecord } from "./key-record.ts";
import { apiKeyRecords } from "./keys/records.ts";
import { leaseRecords } from "./leases/records.ts";
import { profileRecords } from "./profiles/records.ts";
import { queueRecords } from "./queues/records.ts";
import { scheduleRecords } from "./schedule/records.ts";
import { secretRecords } from "./secrets/records.ts";
import { snapshotRecords } from "./snapshots/records.ts";
import { toolRecords } from "./tools/records.ts";
import { usageRecords } from "./usage/records.ts";

/** Every key of `redisKeys`, as the folder that owns it describes it. Only documentation and tests read it. */
export const keyRecords: { readonly [name in keyof typeof redisKeys]: KeyRecord } = {
  ...approvalRecords,
  ...artifactRecords,
  ...batchRecords,
  ...deadLetterRecords,
  ...egressRecords,
  ...eventRecords,
  ...fleetRecords,
  ...gatewayRecords,
  ...jobRecords,
  ...apiKeyRecords,
  ...leaseRecords,
  ...profileRecords,
  ...queueRecords,
  ...scheduleRecords,
  ...secretRecords,
  ...snapshotRecords,
  ...toolRecords,
  ...usageRecords,
};
