-- Writes the terminal record of a job that no worker runs, for somebody who holds no lease. Needs tenant-jobs.lua and tell-end.lua.
-- Reads KEYS  1 events (stream)  2 job (hash)  3 staged (string)
-- `told`: as of tell-end.lua, and outcome, stagedMs: how long a request is kept for whoever is about to read it
local function endUnheld(told)
  redis.call('XADD', KEYS[1], '*', 't', 'finished', 'd', told.result)
  redis.call('PEXPIRE', KEYS[1], told.keptMs)
  redis.call('HSET', KEYS[2], 'outcome', told.outcome)
  redis.call('PEXPIRE', KEYS[2], told.keptMs)
  redis.call('PEXPIRE', KEYS[3], told.stagedMs)
  local counted = redis.call('HMGET', KEYS[2], 'bytes', 'tenant')
  uncountJob(told.key, told.jobId, counted[1], counted[2])
  tellEnd(told)
end
