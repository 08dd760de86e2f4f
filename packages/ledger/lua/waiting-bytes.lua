-- The bytes of a tenant's requests that have not ended: counted once per job when its first attempt is added, and given back in the step
-- that writes its terminal record. In the slot of the sandbox: of the sandbox that all tenants share, another than the tenant's.
local function waitingBytesKey(sandboxKey, tenant)
  return string.format('@waitingBytes', string.match(sandboxKey, '^[^.]+'), tenant)
end

local function countBytes(record, sandboxKey, tenant, bytes)
  if redis.call('HSETNX', record, 'bytes', bytes) == 1 then
    redis.call('INCRBY', waitingBytesKey(sandboxKey, tenant), bytes)
  end
end

-- `bytes`, `tenant`: as in the job's record, false for a job that was never added.
local function giveBytesBack(sandboxKey, bytes, tenant)
  if bytes and tenant then
    local key = waitingBytesKey(sandboxKey, tenant)
    if redis.call('DECRBY', key, bytes) <= 0 then
      redis.call('DEL', key)
    end
  end
end
