-- Records that a job begins, unless something forbids it. Needs `inTurn`: ids in the queue that may begin now.
-- `begin`: {events, record, entry, queuedId, attempt, part, data}   `late`: the caller has to renew its lease first
-- Gives 'begun', 'finished-before', 'cancelled', 'out-of-turn' or 'late'.
local function beginJob(begin, epoch, late, inTurn, now)
  local record = redis.call('HMGET', begin.record, 'begun', 'epoch', 'outcome', 'cancel')
  local begun = tonumber(record[1] or '0')
  -- The entry's own mark outlives the job's record, which expires. A later attempt that began means that this one has ended.
  if record[3] or begun > begin.attempt or redis.call('HEXISTS', begin.entry, 'ended') == 1 then
    return 'finished-before'
  end
  -- Also if the same holder recorded its beginning and the answer was lost: a holder that asks has not run the job.
  if record[4] then
    return 'cancelled'
  end
  -- Recorded before for the same holder, whose answer was lost on the way.
  if begun == begin.attempt and record[2] == epoch then
    return 'begun'
  end
  if late then
    return 'late'
  end
  if not inTurn[begin.queuedId] then
    return 'out-of-turn'
  end
  redis.call('XADD', begin.events, '*', 't', 'started', 'd', begin.data)
  redis.call('HSET', begin.record, 'begun', begin.attempt, 'begunAt', now, 'epoch', epoch, 'part', begin.part)
  -- Without an expiry until the job has ended: this record keeps the job from beginning a second time.
  redis.call('PERSIST', begin.record)
  return 'begun'
end
