#!lua flags=allow-oom
-- Stores a worker's answer to a ping, also on a full Redis: otherwise the asker would take the worker for dead.
-- KEYS  1 answer (string)
-- ARGV  1 the answer  2 ms until it expires
-- Reply 1
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
