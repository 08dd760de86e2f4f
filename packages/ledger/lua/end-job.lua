-- Publishes the end of an attempt, marks its entry, and takes it out of its queue in the same step unless its holder has something to
-- do first: then the holder completes it. Needs board-entry.lua, leave-queue.lua, tenant-jobs.lua,
-- usage.lua, result-bytes.lua, forget-approval.lua and publish-end.lua.
-- `ending`: {events, record, staged, inbox, entry, jobId, queuedId, leaves, outcome, shown, part, excerpt, used, eventFields}
--           outcome is '' for an attempt that another follows; shown: as of board-entry.lua; eventFields is {type, data, type, …};
--           excerpt of the result for results and inbox, '' if the whole of it goes there; used: as of usage.lua
-- `common`: {key, active, board, keptMs, ended, gone, used}; this function adds to the last three what the script does once for all ends:
--           jobs for uncountJobs, keys to unlink, attempts for countUsage
-- Gives 'published', or 'finished-before' if the job has its terminal record already.
local function endJob(ending, common)
  local entry = redis.call('HMGET', ending.entry, 'timestamp', 'failedReason', 'ended')
  local function leave(word)
    if ending.leaves then
      leaveQueue(common.active, common.board, ending.queuedId, entry)
    end
    return word
  end
  local record = redis.call('HMGET', ending.record, 'outcome', 'part', 'bytes', 'tenant', 'said')
  local ended = entry[3]
  if record[1] or (ended and ended ~= 'retrying') then
    return leave('finished-before')
  end
  -- Published before by the same holder, whose answer was lost on the way.
  if ending.part ~= '' and record[2] == ending.part then
    return leave('published')
  end
  -- The mark decides for as long as the entry is in the queue, which may be longer than the records below are kept.
  if entry[1] then
    markEntry(ending.entry, ending.queuedId, common.board.now, ending.shown)
    entry[2] = ending.shown.reason ~= ''
  end
  local bytes = tonumber(record[5] or '0')
  for index = 1, #ending.eventFields, 2 do
    redis.call('XADD', ending.events, '*', 't', ending.eventFields[index], 'd', ending.eventFields[index + 1])
    bytes = bytes + #ending.eventFields[index + 1]
  end
  local isLast = ending.outcome ~= ''
  table.insert(common.used, {
    tenant = record[4], jobs = isLast and 1 or 0, failed = isLast and ending.shown.reason ~= '' and 1 or 0, used = ending.used,
  })
  if not isLast then
    redis.call('HSET', ending.record, 'part', ending.part, 'said', bytes)
    return leave('published')
  end
  redis.call('HSET', ending.record, 'key', common.key, 'outcome', ending.outcome)
  redis.call('PEXPIRE', ending.record, common.keptMs)
  redis.call('PEXPIRE', ending.events, common.keptMs)
  if record[4] then
    countResult(common.key, record[4], common.board.now, tonumber(common.keptMs), bytes)
  end
  forgetApproval(common.key, ending.jobId)
  table.insert(common.gone, ending.staged)
  table.insert(common.ended, {ending.jobId, record[3], record[4]})
  local isLong = ending.excerpt ~= ''
  publishEnd({
    key = common.key, jobId = ending.jobId, inbox = ending.inbox, keptMs = common.keptMs, inboxMs = common.keptMs,
    field = isLong and 'excerpt' or 'd', result = isLong and ending.excerpt or ending.eventFields[#ending.eventFields],
  })
  return leave('published')
end
