/** The file in which the start script leaves the worker's id for the health check: in the container's memory. */
export const workerIdFile = "/tmp/berth-worker-id";
