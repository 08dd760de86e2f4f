-- A tenant's jobs that have not ended, and the bytes of their requests. A job is counted when its first attempt is added, and leaves in
-- the step that writes its terminal record. In the slot of the sandbox: of the sandbox that all tenants share, another than the
-- tenant's.
local function ofTenant(pattern, sandboxKey, tenant)
  return string.format(pattern, string.match(sandboxKey, '^[^.]+'), tenant)
end

local function waitingBytesKey(sandboxKey, tenant)
  return ofTenant('@waitingBytes', sandboxKey, tenant)
end

-- `bytes`: 0 if they are counted already.
local function countJob(sandboxKey, tenant, jobId, now, bytes)
  redis.call('ZADD', ofTenant('@unfinishedOf', sandboxKey, tenant), 'NX', now, jobId)
  if bytes > 0 then
    redis.call('INCRBY', waitingBytesKey(sandboxKey, tenant), bytes)
  end
end

-- `bytes`, `tenant`: as in the job's record, false for a job that was never added.
local function uncountJob(sandboxKey, jobId, bytes, tenant)
  if not tenant then
    return
  end
  redis.call('ZREM', ofTenant('@unfinishedOf', sandboxKey, tenant), jobId)
  if bytes then
    local key = waitingBytesKey(sandboxKey, tenant)
    if redis.call('DECRBY', key, bytes) <= 0 then
      redis.call('DEL', key)
    end
  end
end
