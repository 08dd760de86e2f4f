-- How much one tenant may have of everything. Needs tenant-jobs.lua.
-- `defaults`: as JSON   `own`: what the layers of the fleet and of the tenant change, as JSON or false
local function ceilingsIn(defaults, own)
  local all = cjson.decode(defaults)
  for index = 1, 2 do
    if own[index] then
      for name, value in pairs(cjson.decode(own[index])) do
        all[name] = value
      end
    end
  end
  return all
end

local function layersWithCeilings(tenant)
  return redis.call('HMGET', '@ceilings', 'fleet', 'tenant.' .. tenant)
end

-- Gives nil, or {'tenant-full', ceiling, used, limit}. 0 is no ceiling.
local function pastCeiling(all, ceiling, used, more)
  if all[ceiling] > 0 and used + more > all[ceiling] then
    return {'tenant-full', ceiling, used, all[ceiling]}
  end
  return nil
end
