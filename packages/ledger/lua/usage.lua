-- What a tenant's jobs used, by day. One hash of a tenant, in the slot of the sandbox: field: the day's number since 1970, by Redis'
-- clock; value: numbers in the order of `usageParts`, with spaces between them. Needs elsewhere.lua and tenant-jobs.lua.
-- A hash of about a hundred such fields is one flat block of memory in Redis; a key for each day would cost four times as much.
local dayMs = 86400000
-- jobs that ended, of them failed, cpu in microseconds, wall time in ms, largest peak of memory in KiB, bytes in, bytes out
local usageParts, peakPart = 7, 5

local function numbersIn(text)
  local numbers = {}
  for number in string.gmatch(text, '%d+') do
    numbers[#numbers + 1] = tonumber(number)
  end
  return numbers
end

-- Today's parts; an empty table if nothing was used yet.
local function usedToday(sandboxKey, tenant, now)
  return numbersIn(redis.call('HGET', ofTenant('@usage', sandboxKey, tenant), math.floor(now / dayMs)) or '')
end

-- When the day ends, in ms.
local function dayEnds(now)
  return (math.floor(now / dayMs) + 1) * dayMs
end

local function addUsage(sums, more)
  for part = 1, usageParts do
    local was, is = sums[part] or 0, more[part] or 0
    sums[part] = part == peakPart and math.max(was, is) or was + is
  end
end

-- To one tenant's day.
local function countUsageOf(sandboxKey, tenant, now, keptDays, more)
  local key = ofTenant('@usage', sandboxKey, tenant)
  local today = math.floor(now / dayMs)
  local before = redis.call('HGET', key, today)
  local sums = numbersIn(before or '')
  addUsage(sums, more)
  local texts = {}
  for part = 1, usageParts do
    texts[part] = string.format('%.0f', sums[part])
  end
  redis.call('HSET', key, today, table.concat(texts, ' '))
  if before then
    return
  end
  -- Once a day: removes days that are no longer kept.
  for _, day in ipairs(redis.call('HKEYS', key)) do
    if tonumber(day) <= today - keptDays then
      redis.call('HDEL', key, day)
    end
  end
  redis.call('PEXPIRE', key, keptDays * dayMs)
  elsewhere('ZADD', '@usageTenants', today, tenant)
  elsewhere('ZREMRANGEBYSCORE', '@usageTenants', '-inf', today - keptDays)
end

-- Adds attempts to their tenants' day. Each: {tenant, jobs, failed, used}
-- tenant: false if it is not known   used: the parts from the third on, '' if nothing ran
local function countUsage(sandboxKey, now, keptDays, attempts)
  local sums = {}
  for _, ended in ipairs(attempts) do
    if ended.tenant then
      sums[ended.tenant] = sums[ended.tenant] or {}
      addUsage(sums[ended.tenant], numbersIn(string.format('%d %d %s', ended.jobs, ended.failed, ended.used)))
    end
  end
  for tenant, more in pairs(sums) do
    countUsageOf(sandboxKey, tenant, now, keptDays, more)
  end
end
