#!lua flags=allow-oom
-- Gives a lease up. The epoch stays for ever: it only grows.
-- KEYS  1 lease (hash)  2 leases (sorted set, by deadline)  3 pending (sorted set)  4… lists and sorted sets of the sandbox's queue
-- ARGV  1 sandbox key  2 epoch  3 instance  4 '1': only if the queue is empty
-- Reply {1, left}    released; left is how many jobs the queue still has, and the sandbox stays pending if it is not 0
--       {2, left}    kept: the queue has jobs
--       {0, epoch}   another process holds it, or it was released already
--- @include queue-length.lua
local held = redis.call('HMGET', KEYS[1], 'worker', 'epoch', 'instance')
if held[2] ~= ARGV[2] or held[3] ~= ARGV[3] or not held[1] or held[1] == '' then
  return {0, tonumber(held[2] or '0')}
end
local left = queueLength(KEYS, 4)
if left > 0 and ARGV[4] == '1' then
  return {2, left}
end
redis.call('HSET', KEYS[1], 'worker', '', 'instance', '', 'deadline', 0)
redis.call('ZREM', KEYS[2], ARGV[1])
if left == 0 then
  redis.call('ZREM', KEYS[3], ARGV[1])
end
return {1, left}
