#!lua
-- Accepts a job that is to run later, and notes which sandbox its id belongs to.
-- KEYS  1 job (hash)  2 lease (hash)  3 the tenant's sandboxes (sorted set)  4… lists and sorted sets of the sandbox's queue
-- ARGV  1 sandbox key  2 tenant  3 session  4 kind  5 attempt  6 pool, '' for any  7 default limit per sandbox
--       8 default limit of the fleet  9 ms after which an acceptance that nothing followed is forgotten  10 job id
--       11 default limit of bytes per tenant  12 bytes of the request
--       13 mark of what it asks for  then what facts.lua needs
-- Reply {'accepted'}, or a refusal of admission.lua
--- @include now.lua
--- @include elsewhere.lua
--- @include still.lua
--- @include facts.lua
--- @include queue-length.lua
--- @include nearly-full.lua
--- @include tenant-jobs.lua
--- @include admission.lua
local key, tenant, session, kind, attempt, jobId = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[10]
refuseWhileMoving(key)
local facts = fleetFacts(jobId, tenant)
local wanted = {
  key = key, attempt = attempt, pool = ARGV[6], tenant = tenant, bytes = tonumber(ARGV[12]),
  mostPerSandbox = ARGV[7], mostInFleet = ARGV[8], mostBytes = ARGV[11], asks = ARGV[13], isNew = true,
}
local no = refusal(KEYS[1], redis.call('HGET', KEYS[2], 'pool'), 4, wanted, facts)
if no then
  return no
end
local now = redisNow()
if redis.call('HEXISTS', KEYS[1], 'key') == 0 then
  redis.call('HSET', KEYS[1], 'key', key, 'tenant', tenant, 'session', session, 'kind', kind, 'at', now, 'asks', ARGV[13])
  redis.call('PEXPIRE', KEYS[1], ARGV[9])
  elsewhere('SET', string.format('@sandboxOf', jobId), key, 'PX', ARGV[9])
end
redis.call('ZADD', KEYS[3], now, key)
post(key)
return {'accepted'}
