/**
 * Generates passwords for Redis and Grafana at the first start of the compose file. One that is given wins, and a later
 * start may give another.
 */
import { makePasswords } from "./password-files.mjs";

makePasswords(process.env);
