#!lua flags=allow-oom
-- Ends a job that no worker has begun, for its canceller, and takes it out of the queue. No epoch is compared, since the
-- canceller holds no lease. This script and begin-job.lua compare the same records, so of a beginning and this end only the first happens.
-- KEYS  1 events (stream)  2 job (hash)  3 staged (string)  4 the entry in the queue (hash)  5 lease (hash)
--       6 completed (sorted set)  7 failed (sorted set)  8… lists and sorted sets in which the queue keeps jobs that are not finished
-- ARGV  1 sandbox key  2 job id  3 attempt that waits  4 ms its end is remembered  5 inbox (stream), '' if there is none
--       6 ms the inbox is kept  7 how it ended  8 data of the event  9 ms a staged request is kept for a worker that is about to read it
--       10 the entry's id in the queue  11 lists longer than this are not walked  12 what the keys of entries begin with
--       13 how many ended entries are kept  14 mark, 15 returned value and 16 reason for its entry
-- Reply 'ended'             the terminal record was written
--       'finished-before'   it had a terminal record before
--       'begun'             it has begun, or is unknown: the holder of its sandbox publishes its end
--- @include now.lua
--- @include elsewhere.lua
--- @include still.lua
--- @include tenant-jobs.lua
--- @include result-bytes.lua
--- @include forget-approval.lua
--- @include publish-end.lua
--- @include board-entry.lua
--- @include end-unheld.lua
local record, entry, key, queuedId = KEYS[2], KEYS[4], ARGV[1], ARGV[10]
refuseWhileMoving(key)
local known = redis.call('HMGET', record, 'key', 'begun', 'outcome')
if known[3] then
  return 'finished-before'
end
if known[1] ~= key or tonumber(known[2] or '0') >= tonumber(ARGV[3]) then
  return 'begun'
end
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
if #last > 0 and last[1][2][2] == 'finished' then
  return 'finished-before'
end
-- Between attempts it has not begun either.
if #last > 0 and last[1][2][2] ~= 'retrying' then
  return 'begun'
end
endUnheld({
  key = key, jobId = ARGV[2], keptMs = ARGV[4], inbox = ARGV[5], inboxMs = ARGV[6], outcome = ARGV[7],
  field = 'd', result = ARGV[8], stagedMs = ARGV[9],
})
if redis.call('EXISTS', entry) == 1 then
  -- The records above expire. An unmarked entry that outlived them in its queue would run.
  local now = redisNow()
  markEntry(entry, queuedId, now, {mark = ARGV[14], returned = ARGV[15], reason = ARGV[16]})
  local isIn, left = false, 0
  for index = 8, #KEYS do
    local kind = redis.call('TYPE', KEYS[index]).ok
    if kind == 'zset' then
      isIn = redis.call('ZREM', KEYS[index], queuedId) == 1 or isIn
      left = left + redis.call('ZCARD', KEYS[index])
    elseif kind == 'list' then
      local length = redis.call('LLEN', KEYS[index])
      if length <= tonumber(ARGV[11]) then
        isIn = redis.call('LREM', KEYS[index], 1, queuedId) == 1 or isIn
        length = redis.call('LLEN', KEYS[index])
      end
      left = left + length
    end
  end
  if isIn then
    local board = {completed = KEYS[6], failed = KEYS[7], prefix = ARGV[12], now = now, keptEntries = tonumber(ARGV[13])}
    listEntry(board, queuedId, ARGV[16] ~= '')
    writeBoard(board, {})
  end
  -- It was the sandbox's last job, so no worker has to take the sandbox. A holder notices by itself; on a cluster the caller does this.
  local lease = redis.call('HMGET', KEYS[5], 'worker', 'deadline')
  local live = lease[1] and lease[1] ~= '' and tonumber(lease[2] or '0') > now
  if isIn and left == 0 and not live and not isCluster then
    redis.call('ZREM', '@pending', key)
  end
end
post(key)
return 'ended'
