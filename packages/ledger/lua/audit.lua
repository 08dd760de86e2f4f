#!lua flags=allow-oom
-- Ends a job that nothing will ever end: it is in no queue and not in the schedule, and no live epoch runs it. Every step that moves
-- a job puts it into its next place before, or in the same script in which, it leaves the last one. So one look at all places is
-- enough, however young the job is.
-- KEYS  1 events (stream)  2 results (stream)  3 inbox (stream)  4 job (hash)  5 unfinished (sorted set)  6 staged (string)
--       7 the entry in the queue (hash)  8 lease (hash)  9 the attempt's entry in the schedule (hash)  10 the next attempt's
--       11… lists and sorted sets in which the queue keeps jobs that are not finished
-- ARGV  1 sandbox key  2 job id  3 the last attempt that was added  4 ms its end is remembered  5 ms the inbox is kept, '' if there is none
--       6 how it ended  7 data of the event  8 ms a staged request is kept for whoever is about to read it
--       9 the entry's id in the queue  10 lists longer than this are not walked: the job counts as being there
-- Reply {'ended'}
--       {'finished-before'}   it has its end, and is no longer among the unfinished
--       {'kept', where}       'queued', 'scheduled', 'running', or 'changed' since the caller looked
--- @include now.lua
--- @include waiting-bytes.lua
--- @include tell-end.lua
local queuedId, walkedMost = ARGV[9], tonumber(ARGV[10])
local known = redis.call('HMGET', KEYS[4], 'key', 'added', 'begun', 'outcome', 'epoch')
local added, begun = tonumber(known[2] or '0'), tonumber(known[3] or '0')
if known[1] ~= ARGV[1] or added ~= tonumber(ARGV[3]) then
  return {'kept', 'changed'}
end
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
local lastType = last and last[2][2]
if known[4] or lastType == 'finished' then
  redis.call('ZREM', KEYS[5], ARGV[2])
  return {'finished-before'}
end
if redis.call('EXISTS', KEYS[9], KEYS[10]) > 0 then
  return {'kept', 'scheduled'}
end
for index = 11, #KEYS do
  local kind = redis.call('TYPE', KEYS[index]).ok
  if kind == 'zset' and redis.call('ZSCORE', KEYS[index], queuedId) then
    return {'kept', 'queued'}
  end
  if kind == 'list' and (redis.call('LLEN', KEYS[index]) > walkedMost or redis.call('LPOS', KEYS[index], queuedId)) then
    return {'kept', 'queued'}
  end
end
-- An entry may have been taken out by hand while its job runs: the holder still tells its end.
local lease = redis.call('HMGET', KEYS[8], 'worker', 'epoch', 'deadline')
local isHeld = lease[1] and lease[1] ~= '' and tonumber(lease[3] or '0') > redisNow()
if isHeld and begun > 0 and begun >= added and known[5] == lease[2] and lastType ~= 'retrying' then
  return {'kept', 'running'}
end
tellEnd({
  key = ARGV[1], jobId = ARGV[2], outcome = ARGV[6], data = ARGV[7],
  keptMs = ARGV[4], inboxMs = ARGV[5], stagedMs = ARGV[8],
})
-- Bull Board keeps the entries of attempts that ended; any other would make its id count as known for ever.
if redis.call('HEXISTS', KEYS[7], 'finishedOn') == 0 then
  redis.call('UNLINK', KEYS[7])
end
return {'ended'}
