-- Bytes of a tenant's ended jobs' events. One hash of a tenant, in the slot of the sandbox: field: the hour since 1970 in which the
-- events expire, by Redis' clock; value: bytes. They count until that hour is over, up to an hour longer than they are there.
-- Needs tenant-jobs.lua.
local hourMs = 3600000

local function resultBytes(sandboxKey, tenant, now)
  local fields, sum = redis.call('HGETALL', ofTenant('@resultBytes', sandboxKey, tenant)), 0
  local hour = math.floor(now / hourMs)
  for index = 1, #fields, 2 do
    if tonumber(fields[index]) >= hour then
      sum = sum + tonumber(fields[index + 1])
    end
  end
  return sum
end

-- `keptMs`: how long the events are kept from now on
local function countResult(sandboxKey, tenant, now, keptMs, bytes)
  local key = ofTenant('@resultBytes', sandboxKey, tenant)
  local hour = math.floor((now + keptMs) / hourMs)
  if redis.call('HINCRBY', key, hour, bytes) > bytes then
    return
  end
  -- Once an hour.
  for _, field in ipairs(redis.call('HKEYS', key)) do
    if tonumber(field) < math.floor(now / hourMs) then
      redis.call('HDEL', key, field)
    end
  end
  redis.call('PEXPIRE', key, keptMs + hourMs)
end
