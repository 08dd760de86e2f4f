#!lua flags=allow-oom
-- Takes one job from any position of a sandbox's queue.
-- KEYS  1 lease (hash)  2 wait (list)  3 prioritized (sorted set)  4 active (list, the last taken first)  5 the job's entry (hash)
-- ARGV  1 epoch  2 instance  3 its id in the queue
-- Reply {'fenced', epoch}             another process holds the sandbox: nothing was changed
--       {'gone'}                      it does not wait any more
--       {'picked', data, timestamp}
--- @include now.lua
--- @include fenced.lua
local epoch = fencedBy(KEYS[1], ARGV[1], ARGV[2])
if epoch then
  return {'fenced', epoch}
end
local queuedId = ARGV[3]
local entry = redis.call('HMGET', KEYS[5], 'data', 'timestamp')
local waited = redis.call('LREM', KEYS[2], -1, queuedId) + redis.call('ZREM', KEYS[3], queuedId) > 0
if not entry[1] then
  return {'gone'}
end
if waited then
  redis.call('LPUSH', KEYS[4], queuedId)
  redis.call('HSET', KEYS[5], 'processedOn', redisNow())
elseif not redis.call('LPOS', KEYS[4], queuedId) then
  return {'gone'}
end
-- Also if it was taken before: the worker repeats the call after a lost answer.
return {'picked', entry[1], entry[2] or '0'}
