#!lua flags=allow-oom
-- Leaves a worker's answer to a ping. A worker that could not answer because Redis is full would be taken for dead.
-- KEYS  1 answer (string)
-- ARGV  1 what it answers  2 ms until it is forgotten
-- Reply 1
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
