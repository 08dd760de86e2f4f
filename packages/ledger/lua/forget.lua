-- Removes the keys of a sandbox's queue that nobody has used for long. Looks again at everything that would forbid it.
-- KEYS  1 lease (hash)  2 pending (sorted set)  3 queues (sorted set, by last use)  4 the queue's name with its prefix
-- ARGV  1 sandbox key  2 unused for at least this many ms
-- Reply 1: removed   0: in use
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local used = redis.call('ZSCORE', KEYS[3], ARGV[1])
if not used or tonumber(used) > now - tonumber(ARGV[2]) then
  return 0
end
-- One that is in use goes to the end of the index, so that it hides none of those behind it.
local function inUse()
  redis.call('ZADD', KEYS[3], now, ARGV[1])
  return 0
end
local held = redis.call('HMGET', KEYS[1], 'worker', 'deadline')
if held[1] and held[1] ~= '' and tonumber(held[2] or '0') > now then
  return inUse()
end
if redis.call('ZSCORE', KEYS[2], ARGV[1]) then
  return inUse()
end
for _, list in ipairs({'wait', 'active', 'paused'}) do
  if redis.call('LLEN', KEYS[4] .. ':' .. list) > 0 then
    return inUse()
  end
end
for _, set in ipairs({'prioritized', 'delayed', 'waiting-children'}) do
  if redis.call('ZCARD', KEYS[4] .. ':' .. set) > 0 then
    return inUse()
  end
end
for _, set in ipairs({'completed', 'failed'}) do
  for _, id in ipairs(redis.call('ZRANGE', KEYS[4] .. ':' .. set, 0, -1)) do
    redis.call('UNLINK', KEYS[4] .. ':' .. id, KEYS[4] .. ':' .. id .. ':logs', KEYS[4] .. ':' .. id .. ':lock')
  end
end
for _, name in ipairs({'completed', 'failed', 'meta', 'id', 'events', 'marker', 'pc', 'stalled', 'stalled-check', 'repeat', 'limiter'}) do
  redis.call('UNLINK', KEYS[4] .. ':' .. name)
end
redis.call('ZREM', KEYS[3], ARGV[1])
return 1
