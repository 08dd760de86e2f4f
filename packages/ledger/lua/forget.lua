#!lua flags=allow-oom
-- Removes the keys of a sandbox's queue that was unused for long. Checks again everything that would forbid it.
-- KEYS  1 lease (hash)  2 the queue's name with its prefix
-- ARGV  1 sandbox key  2 unused for at least this many ms  3 on a cluster: '1' if it is pending
-- Reply 1   removed; on a cluster: the caller removes it from the index of queues
--       0   in use
--- @include now.lua
--- @include elsewhere.lua
--- @include still.lua
refuseWhileMoving(ARGV[1])
local now, queue = redisNow(), KEYS[2]
if not isCluster then
  local used = redis.call('ZSCORE', '@queues', ARGV[1])
  if not used or tonumber(used) > now - tonumber(ARGV[2]) then
    return 0
  end
end
-- Moves a queue in use to the end of the index, so that it does not hide the queues behind it.
local function inUse()
  elsewhere('ZADD', '@queues', now, ARGV[1])
  post(ARGV[1])
  return 0
end
if isCluster and ARGV[3] == '1' or not isCluster and redis.call('ZSCORE', '@pending', ARGV[1]) then
  return inUse()
end
local held = redis.call('HMGET', KEYS[1], 'worker', 'deadline')
if held[1] and held[1] ~= '' and tonumber(held[2] or '0') > now then
  return inUse()
end
for _, list in ipairs({'wait', 'active', 'paused'}) do
  if redis.call('LLEN', queue .. ':' .. list) > 0 then
    return inUse()
  end
end
for _, set in ipairs({'prioritized', 'delayed', 'waiting-children'}) do
  if redis.call('ZCARD', queue .. ':' .. set) > 0 then
    return inUse()
  end
end
for _, set in ipairs({'completed', 'failed'}) do
  for _, id in ipairs(redis.call('ZRANGE', queue .. ':' .. set, 0, -1)) do
    redis.call('UNLINK', queue .. ':' .. id, queue .. ':' .. id .. ':logs', queue .. ':' .. id .. ':lock')
  end
end
for _, name in ipairs({'completed', 'failed', 'meta', 'id', 'events', 'marker', 'pc', 'stalled', 'stalled-check', 'repeat', 'limiter'}) do
  redis.call('UNLINK', queue .. ':' .. name)
end
-- The next job adds it to the index again.
local known = redis.call('HMGET', KEYS[1], 'destroyed', 'home')
if known[1] and not known[2] then
  -- The sandbox has no files and got no job since. The next epoch will still be higher, because take.lua uses the clock.
  redis.call('DEL', KEYS[1])
else
  redis.call('HDEL', KEYS[1], 'used')
end
if not isCluster then
  redis.call('ZREM', '@queues', ARGV[1])
end
return 1
