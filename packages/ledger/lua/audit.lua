#!lua flags=allow-oom
-- Ends a job that no process will ever end: it is in no queue and not in the schedule, and no live epoch runs it. Every step that moves
-- a job puts it into its next place before, or in the same script in which, it leaves the last one. So one look at all places is
-- enough, however young the job is.
-- KEYS  1 events (stream)  2 job (hash)  3 staged (string)  4 the entry in the queue (hash)  5 lease (hash)
--       6 completed (sorted set)  7 failed (sorted set)  8… lists and sorted sets in which the queue keeps jobs that are not finished
-- ARGV  1 sandbox key  2 job id  3 the last attempt that was added  4 ms its end is remembered  5 inbox (stream), '' if there is none
--       6 ms the inbox is kept  7 how it ended  8 data of the event  9 ms a staged request is kept for a worker that is about to read it
--       10 the entry's id in the queue  11 lists longer than this are not walked: the job counts as being there
--       12 and 13 the schedule's entries of the last attempt and of the next one (hashes)
--       14 '1' if the schedule had one of them a moment ago, for a cluster, where the schedule is in another slot
--       15 what the keys of entries begin with  16 how many ended entries are kept  17 mark, 18 returned value and 19 reason for its entry
--       20 id of the last event before the caller looked at the schedule, for a cluster; '' if there was none
-- Reply {'ended'}
--       {'finished-before'}   it has its end, and is no longer among the unfinished
--       {'kept', where}       'queued', 'scheduled', 'running', or 'changed' since the caller looked
--- @include now.lua
--- @include elsewhere.lua
--- @include still.lua
--- @include tenant-jobs.lua
--- @include result-bytes.lua
--- @include forget-approval.lua
--- @include publish-end.lua
--- @include end-unheld.lua
--- @include board-entry.lua
local key, jobId, queuedId, walkedMost = ARGV[1], ARGV[2], ARGV[10], tonumber(ARGV[11])
refuseWhileMoving(key)
local known = redis.call('HMGET', KEYS[2], 'key', 'added', 'begun', 'outcome', 'epoch', 'tenant')
local added, begun = tonumber(known[2] or '0'), tonumber(known[3] or '0')
if known[1] ~= key or added ~= tonumber(ARGV[3]) then
  return {'kept', 'changed'}
end
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
local lastType = last and last[2][2]
if known[4] or lastType == 'finished' then
  uncountJobs(key, {{jobId, false, known[6]}})
  -- On a cluster, a late outbox delivery of its submission may have removed this expiry after the end set it.
  elsewhere('PEXPIRE', string.format('@sandboxOf', jobId), ARGV[4])
  post(key)
  return {'finished-before'}
end
-- On a cluster a retry may have been scheduled since the caller looked. A `retrying` event that is older than that look changes nothing:
-- its retry was scheduled before the event.
local isScheduled = ARGV[14] == '1' or (lastType == 'retrying' and last[1] ~= ARGV[20])
if not isCluster then
  isScheduled = redis.call('EXISTS', ARGV[12], ARGV[13]) > 0
end
if isScheduled then
  return {'kept', 'scheduled'}
end
for index = 8, #KEYS do
  local kind = redis.call('TYPE', KEYS[index]).ok
  if kind == 'zset' and redis.call('ZSCORE', KEYS[index], queuedId) then
    return {'kept', 'queued'}
  end
  if kind == 'list' and (redis.call('LLEN', KEYS[index]) > walkedMost or redis.call('LPOS', KEYS[index], queuedId)) then
    return {'kept', 'queued'}
  end
end
-- An entry may have been taken out by hand while its job runs: the holder still publishes its end.
local lease = redis.call('HMGET', KEYS[5], 'worker', 'epoch', 'deadline')
local isHeld = lease[1] and lease[1] ~= '' and tonumber(lease[3] or '0') > redisNow()
if isHeld and begun > 0 and begun >= added and known[5] == lease[2] and lastType ~= 'retrying' then
  return {'kept', 'running'}
end
endUnheld({
  key = key, jobId = jobId, keptMs = ARGV[4], inbox = ARGV[5], inboxMs = ARGV[6], outcome = ARGV[7],
  field = 'd', result = ARGV[8], stagedMs = ARGV[9],
})
-- An entry that is in no list would make its id count as known for ever.
local entry = redis.call('HMGET', KEYS[4], 'timestamp', 'finishedOn')
if entry[1] and not entry[2] then
  local now = redisNow()
  markEntry(KEYS[4], queuedId, now, {mark = ARGV[17], returned = ARGV[18], reason = ARGV[19]})
  local board = {completed = KEYS[6], failed = KEYS[7], prefix = ARGV[15], now = now, keptEntries = tonumber(ARGV[16])}
  listEntry(board, queuedId, true)
  writeBoard(board, {})
end
post(key)
return {'ended'}
