-- Reads from other hash slots what decides whether a job may be added. On a cluster the caller reads it just before and passes it as the
-- last argument. Needs elsewhere.lua and ceilings.lua.
-- Gives {full, limits, unfinished, sandbox, paused, ceilings}: the mark of a Redis that is nearly full as {until, used, from}; the settings'
-- {perSandbox, inFleet}; how many jobs the fleet has; the sandbox that the job's id belongs to; 1 if the sandbox's owner is paused; the
-- ceilings that the fleet's and the tenant's layers change
local function fleetFacts(jobId, owner, tenant)
  if isCluster then
    return cjson.decode(ARGV[#ARGV])
  end
  local settings = redis.call('HMGET', '@settings', 'fullUntil', 'usedBytes', 'fullFromBytes',
    'maxWaitingPerSandbox', 'maxWaitingInFleet')
  return {
    full = {settings[1], settings[2], settings[3]},
    limits = {settings[4], settings[5]},
    unfinished = redis.call('ZCARD', '@unfinished'),
    sandbox = redis.call('GET', string.format('@sandboxOf', jobId)) or nil,
    paused = redis.call('SISMEMBER', '@paused', owner),
    ceilings = layersWithCeilings(tenant),
  }
end
