#!lua flags=allow-oom
-- Marks in the fleet's settings that Redis is nearly full, or removes the mark. New jobs are refused while the mark is valid, so
-- that the ends of accepted ones have room. Without maxmemory there is no mark.
-- KEYS  1 settings (hash)
-- ARGV  1 percentage of maxmemory from which new jobs are refused, unless the settings say otherwise  2 ms the mark is valid
--       3 and 4 on a cluster: used bytes and maxmemory of its fullest primary, from INFO memory
-- Reply 1   marked
--       0   there is room
--- @include now.lua
local settings = KEYS[1]
local used, most = tonumber(ARGV[3]), tonumber(ARGV[4])
if not used then
  local info = redis.call('INFO', 'memory')
  local function bytes(name)
    return tonumber(string.match(info, '\n' .. name .. ':(%d+)') or '0')
  end
  -- What Redis itself compares with maxmemory.
  used, most = bytes('used_memory') - bytes('mem_not_counted_for_evict'), bytes('maxmemory')
end
local from = math.floor(most * tonumber(redis.call('HGET', settings, 'fullAtPercent') or ARGV[1]) / 100)
if most == 0 or used < from then
  redis.call('HDEL', settings, 'fullUntil', 'usedBytes', 'fullFromBytes')
  return 0
end
redis.call('HSET', settings, 'fullUntil', redisNow() + tonumber(ARGV[2]), 'usedBytes', used, 'fullFromBytes', from)
return 1
