-- Writes the terminal record of a job that no worker runs, for somebody who holds no lease. Needs waiting-bytes.lua.
-- Reads KEYS  1 events (stream)  2 results (stream)  3 inbox (stream)  4 job (hash)  5 unfinished (sorted set)  6 staged (string)
-- `told`: key, jobId, outcome, data of the event, keptMs its end is remembered, inboxMs ('' if there is none), stagedMs a request
-- is kept for whoever is about to read it
local function tellEnd(told)
  redis.call('XADD', KEYS[1], '*', 't', 'finished', 'd', told.data)
  redis.call('PEXPIRE', KEYS[1], told.keptMs)
  redis.call('XADD', KEYS[2], 'MAXLEN', '~', 100000, '*', 'job', told.jobId, 'key', told.key, 'd', told.data)
  if told.inboxMs ~= '' then
    redis.call('XADD', KEYS[3], 'MAXLEN', '~', 100000, '*', 'job', told.jobId, 'd', told.data, 'key', told.key)
    redis.call('PEXPIRE', KEYS[3], told.inboxMs)
  end
  redis.call('HSET', KEYS[4], 'outcome', told.outcome)
  redis.call('PEXPIRE', KEYS[4], told.keptMs)
  redis.call('ZREM', KEYS[5], told.jobId)
  redis.call('PEXPIRE', KEYS[6], told.stagedMs)
  local counted = redis.call('HMGET', KEYS[4], 'bytes', 'tenant')
  giveBytesBack(counted[1], counted[2])
end
