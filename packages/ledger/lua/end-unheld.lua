-- Writes the terminal record of a job that no worker runs, for a caller that holds no lease. Needs now.lua,
-- tenant-jobs.lua, result-bytes.lua, forget-approval.lua and publish-end.lua.
-- Reads KEYS  1 events (stream)  2 job (hash)  3 staged (string)
-- `ending`: as of publish-end.lua, and outcome, stagedMs: how long a request is kept for a worker that is about to read it
local function endUnheld(ending)
  redis.call('XADD', KEYS[1], '*', 't', 'finished', 'd', ending.result)
  redis.call('PEXPIRE', KEYS[1], ending.keptMs)
  redis.call('HSET', KEYS[2], 'outcome', ending.outcome)
  redis.call('PEXPIRE', KEYS[2], ending.keptMs)
  redis.call('PEXPIRE', KEYS[3], ending.stagedMs)
  local counted = redis.call('HMGET', KEYS[2], 'bytes', 'tenant', 'delayed', 'said')
  if counted[2] then
    uncountDelayed(ending.key, counted[2], ending.jobId, counted[3])
    countResult(ending.key, counted[2], redisNow(), tonumber(ending.keptMs), tonumber(counted[4] or '0') + #ending.result)
  end
  forgetApproval(ending.key, ending.jobId)
  uncountJobs(ending.key, {{ending.jobId, counted[1], counted[2]}})
  publishEnd(ending)
end
