-- The end of a job ends its approval too: another job of the same id has to ask for one of its own. Needs tenant-jobs.lua.
local function forgetApproval(sandboxKey, jobId)
  if redis.call('UNLINK', ofTenant('@approval', sandboxKey, jobId)) == 1 then
    redis.call('ZREM', ofTenant('@approvalsOf', sandboxKey), jobId)
  end
end
