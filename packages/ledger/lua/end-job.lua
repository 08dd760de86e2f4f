-- Publishes the end of an attempt, marks its entry, and takes it out of its queue in the same step unless its holder has something to
-- do first: then the holder completes it. Needs leave-queue.lua and waiting-bytes.lua.
-- `ending`: {events, inbox, record, staged, entry, jobId, queuedId, leaves, hasInbox, outcome, mark, part, excerpt, said}
--           outcome is '' for an attempt that another follows; said is {type, data, type, data, …};
--           excerpt of the result for results and inbox, '' if the whole of it goes there
-- `common`: {key, active, completed, results, unfinished, prefix, now, keptMs, keptEntries}
-- Gives 'published', or 'finished-before' if the job has its terminal record already.
local function endJob(ending, common)
  local function leave(word)
    if ending.leaves then
      leaveQueue(common.active, common.completed, common.prefix, ending.queuedId, common.now, common.keptEntries)
    end
    return word
  end
  local record = redis.call('HMGET', ending.record, 'outcome', 'part', 'bytes', 'tenant')
  local ended = redis.call('HGET', ending.entry, 'ended')
  if record[1] or (ended and ended ~= 'retrying') then
    return leave('finished-before')
  end
  -- Published before by the same holder, whose answer was lost on the way.
  if ending.part ~= '' and record[2] == ending.part then
    return leave('published')
  end
  -- The mark decides for as long as the entry is in the queue, which may be longer than the records below are kept.
  if redis.call('EXISTS', ending.entry) == 1 then
    redis.call('HSET', ending.entry, 'ended', ending.mark)
  end
  for index = 1, #ending.said, 2 do
    redis.call('XADD', ending.events, '*', 't', ending.said[index], 'd', ending.said[index + 1])
  end
  if ending.outcome == '' then
    redis.call('HSET', ending.record, 'part', ending.part)
    return leave('published')
  end
  local field, result = 'd', ending.said[#ending.said]
  if ending.excerpt ~= '' then
    field, result = 'excerpt', ending.excerpt
  end
  redis.call('XADD', common.results, 'MAXLEN', '~', 100000, '*', 'job', ending.jobId, 'key', common.key, field, result)
  if ending.hasInbox then
    redis.call('XADD', ending.inbox, 'MAXLEN', '~', 100000, '*', 'job', ending.jobId, field, result, 'key', common.key)
    redis.call('PEXPIRE', ending.inbox, common.keptMs)
  end
  redis.call('HSET', ending.record, 'key', common.key, 'outcome', ending.outcome)
  redis.call('PEXPIRE', ending.record, common.keptMs)
  redis.call('PEXPIRE', ending.events, common.keptMs)
  redis.call('ZREM', common.unfinished, ending.jobId)
  redis.call('UNLINK', ending.staged)
  giveBytesBack(record[3], record[4])
  return leave('published')
end
