/** Where the start script leaves the worker's id for the health check. In memory, and the container's own. */
export const workerIdFile = "/tmp/berth-worker-id";
