#!lua flags=allow-oom
-- Ends a job that no worker has begun, for its canceller, and takes its entry out of the queue. No epoch is compared, since the
-- canceller holds no lease. This script and begin-job.lua compare the same records, so of a beginning and this end only the first happens.
-- KEYS  1 events (stream)  2 results (stream)  3 inbox (stream)  4 job (hash)  5 unfinished (sorted set)  6 staged (string)
--       7 the entry in the queue (hash)  8 lease (hash)  9 pending (sorted set)
--       10… lists and sorted sets in which the queue keeps jobs that are not finished
-- ARGV  1 sandbox key  2 job id  3 attempt that waits  4 ms its end is remembered  5 ms the inbox is kept, '' if there is none
--       6 how it ended  7 data of the event  8 ms a staged request is kept for whoever is about to read it
--       9 the entry's id in the queue  10 mark for an entry that stays  11 lists longer than this are not walked
-- Reply 1   its end is told
--       2   its end was told before
--       0   it has begun, or is not known: whoever holds its sandbox tells of it
--- @include waiting-bytes.lua
--- @include tell-end.lua
local known = redis.call('HMGET', KEYS[4], 'key', 'begun', 'outcome')
if known[3] then
  return 2
end
if known[1] ~= ARGV[1] or tonumber(known[2] or '0') >= tonumber(ARGV[3]) then
  return 0
end
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
if #last > 0 and last[1][2][2] == 'finished' then
  return 2
end
-- Between attempts it has not begun either.
if #last > 0 and last[1][2][2] ~= 'retrying' then
  return 0
end
tellEnd({
  key = ARGV[1], jobId = ARGV[2], outcome = ARGV[6], data = ARGV[7],
  keptMs = ARGV[4], inboxMs = ARGV[5], stagedMs = ARGV[8],
})
if redis.call('EXISTS', KEYS[7]) == 0 then
  return 1
end
-- The records above expire. An entry must not outlive them without a mark: it would run then.
local isIn, left = false, 0
for index = 10, #KEYS do
  local kind = redis.call('TYPE', KEYS[index]).ok
  if kind == 'zset' then
    isIn = redis.call('ZREM', KEYS[index], ARGV[9]) == 1 or isIn
    left = left + redis.call('ZCARD', KEYS[index])
  elseif kind == 'list' then
    local length = redis.call('LLEN', KEYS[index])
    if length <= tonumber(ARGV[11]) then
      isIn = redis.call('LREM', KEYS[index], 1, ARGV[9]) == 1 or isIn
      length = redis.call('LLEN', KEYS[index])
    end
    left = left + length
  end
end
if not isIn then
  redis.call('HSET', KEYS[7], 'ended', ARGV[10])
  return 1
end
redis.call('DEL', KEYS[7])
-- The sandbox's last job: no worker has to take it any more. A holder finds that out by itself.
local time = redis.call('TIME')
local lease = redis.call('HMGET', KEYS[8], 'worker', 'deadline')
local live = lease[1] and lease[1] ~= '' and tonumber(lease[2] or '0') > time[1] * 1000 + math.floor(time[2] / 1000)
if left == 0 and not live then
  redis.call('ZREM', KEYS[9], ARGV[1])
end
return 1
