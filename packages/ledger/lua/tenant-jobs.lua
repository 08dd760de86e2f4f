-- A tenant's jobs that have not ended, and the bytes of their requests. A job is counted when its first attempt is added, and leaves in
-- the step that writes its terminal record. One that is to run later is counted beside them from when it is accepted until it is added
-- or has ended. In the slot of the sandbox: of the sandbox that all tenants share, another than the tenant's. Needs elsewhere.lua.
local function ofTenant(pattern, sandboxKey, tenant)
  return string.format(pattern, string.match(sandboxKey, '^[^.]+'), tenant)
end

local function waitingBytesKey(sandboxKey, tenant)
  return ofTenant('@waitingBytes', sandboxKey, tenant)
end

local function addBytes(sandboxKey, tenant, bytes)
  local key = waitingBytesKey(sandboxKey, tenant)
  if redis.call('INCRBY', key, bytes) <= 0 then
    redis.call('DEL', key)
  end
end

-- Members are `<job id> <bytes>`.
local function bytesIn(member)
  return tonumber(string.match(member, ' (%d+)$'))
end

-- Removes delayed jobs whose acceptance has expired. Gives how many are left.
local function delayedCount(sandboxKey, tenant, now)
  local delayed = ofTenant('@delayedOf', sandboxKey, tenant)
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', delayed, '-inf', now, 'LIMIT', 0, 1000)) do
    redis.call('ZREM', delayed, member)
    addBytes(sandboxKey, tenant, -bytesIn(member))
  end
  return redis.call('ZCARD', delayed)
end

-- `untilMs`: when its acceptance is forgotten
local function countDelayed(sandboxKey, tenant, jobId, untilMs, bytes)
  local added = redis.call('ZADD', ofTenant('@delayedOf', sandboxKey, tenant), 'GT', untilMs, jobId .. ' ' .. bytes)
  if added == 1 then
    addBytes(sandboxKey, tenant, bytes)
  end
end

-- `bytes`: as in the job's record; false for one that was never delayed
local function uncountDelayed(sandboxKey, tenant, jobId, bytes)
  if bytes and redis.call('ZREM', ofTenant('@delayedOf', sandboxKey, tenant), jobId .. ' ' .. bytes) == 1 then
    addBytes(sandboxKey, tenant, -bytes)
  end
end

-- Bytes of staged requests whose jobs were not accepted yet, except those of one job. Such requests are too large for a queue, so there
-- are few.
local function stagedBytes(sandboxKey, tenant, now, exceptId)
  local staged, sum = ofTenant('@stagedOf', sandboxKey, tenant), 0
  if redis.call('EXISTS', staged) == 0 then
    return 0
  end
  redis.call('ZREMRANGEBYSCORE', staged, '-inf', now)
  for _, member in ipairs(redis.call('ZRANGE', staged, 0, -1)) do
    if string.match(member, '^[^ ]+') ~= exceptId then
      sum = sum + bytesIn(member)
    end
  end
  return sum
end

-- `bytes`: 0 if they are counted already.
local function countJob(sandboxKey, tenant, jobId, now, bytes)
  redis.call('ZADD', ofTenant('@unfinishedOf', sandboxKey, tenant), 'NX', now, jobId)
  if bytes > 0 then
    redis.call('INCRBY', waitingBytesKey(sandboxKey, tenant), bytes)
  end
end

-- `jobs`: {jobId, bytes, tenant} of each that has ended; bytes and tenant as in its record, false for one that was never added.
local function uncountJobs(sandboxKey, jobs)
  local ids, idsOf, bytesOf = {}, {}, {}
  for _, job in ipairs(jobs) do
    local jobId, bytes, tenant = unpack(job, 1, 3)
    ids[#ids + 1] = jobId
    if tenant then
      idsOf[tenant] = idsOf[tenant] or {}
      table.insert(idsOf[tenant], jobId)
      bytesOf[tenant] = (bytesOf[tenant] or 0) + (tonumber(bytes or '0') or 0)
    end
  end
  if #ids > 0 then
    elsewhere('ZREM', '@unfinished', unpack(ids))
  end
  for tenant, own in pairs(idsOf) do
    redis.call('ZREM', ofTenant('@unfinishedOf', sandboxKey, tenant), unpack(own))
    if bytesOf[tenant] > 0 then
      addBytes(sandboxKey, tenant, string.format('%.0f', -bytesOf[tenant]))
    end
  end
end
