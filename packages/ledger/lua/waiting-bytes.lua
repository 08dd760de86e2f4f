-- The bytes of a tenant's requests that have not ended: counted once per job when its first attempt is added, and given back in the step
-- that writes its terminal record.
local function waitingBytesKey(tenant)
  return 'berth:waiting-bytes:' .. tenant
end

local function countBytes(record, tenant, bytes)
  if redis.call('HSETNX', record, 'bytes', bytes) == 1 then
    redis.call('INCRBY', waitingBytesKey(tenant), bytes)
  end
end

-- `bytes`, `tenant`: as in the job's record, false for a job that was never added.
local function giveBytesBack(bytes, tenant)
  if bytes and tenant then
    local key = waitingBytesKey(tenant)
    if redis.call('DECRBY', key, bytes) <= 0 then
      redis.call('DEL', key)
    end
  end
end
