-- Which of a tenant's sandboxes are held. A worker that dies leaves its sandboxes in the set; the next take at the ceiling removes them.
-- Needs ceilings.lua.
local function isHeld(sandboxKey, tenant, now)
  local lease = string.format('@lease', tenant .. '}' .. string.sub(sandboxKey, #tenant + 1))
  lease = string.gsub(lease, '}:lease$', ':lease')
  local held = redis.call('HMGET', lease, 'worker', 'deadline')
  return held[1] and held[1] ~= '' and tonumber(held[2] or '0') > now
end

-- Gives nil, or {'tenant-full', 'heldSandboxes', held, limit}; then every worker is asked to give up one of
-- the tenant's sandboxes that it can spare.
local function heldFull(sandboxKey, tenant, all, now)
  local set = string.format('@heldOf', tenant)
  if not pastCeiling(all, 'heldSandboxes', redis.call('ZCARD', set), 1) then
    return nil
  end
  for _, key in ipairs(redis.call('ZRANGE', set, 0, -1)) do
    if key == sandboxKey or not isHeld(key, tenant, now) then
      redis.call('ZREM', set, key)
    end
  end
  local full = pastCeiling(all, 'heldSandboxes', redis.call('ZCARD', set), 1)
  if full then
    redis.call('PUBLISH', '@control', cjson.encode({type = 'room', tenant = tenant}))
  end
  return full
end
