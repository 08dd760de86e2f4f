#!lua flags=allow-oom
-- Marks a batch as being cancelled, unless it is over.
-- KEYS  1 batch (hash)  2 open batches (sorted set)
-- ARGV  1 batch id  2 now, epoch ms
-- Reply 1 marked  0 it is over, or there is no such batch
local state = redis.call('HGET', KEYS[1], 'state')
if not state or state == 'finished' then
  return 0
end
redis.call('HSET', KEYS[1], 'state', 'cancelling', 'cancelledAtMs', ARGV[2])
redis.call('ZADD', KEYS[2], 'XX', ARGV[2], ARGV[1])
return 1
