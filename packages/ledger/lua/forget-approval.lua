-- Removes the approval of a job that has ended: another job of the same id needs one of its own. Needs tenant-jobs.lua.
local function forgetApproval(sandboxKey, jobId)
  if redis.call('UNLINK', ofTenant('@approval', sandboxKey, jobId)) == 1 then
    redis.call('ZREM', ofTenant('@approvalsOf', sandboxKey), jobId)
  end
end
