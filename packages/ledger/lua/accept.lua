#!lua
-- Accepts a job that is to run later, and notes which sandbox its id belongs to.
-- KEYS  1 job (hash)  2 lease (hash)  3 the tenant's sandboxes (sorted set)  4… lists and sorted sets of the sandbox's queue
-- ARGV  1 sandbox key  2 tenant  3 session  4 kind  5 attempt  6 pool, '' for any  7 default limit per sandbox
--       8 default limit of the fleet  9 ms after which an acceptance is forgotten unless its job is added or scheduled  10 job id
--       11 default ceilings as JSON  12 bytes of the request  13 mark of what it asks for
--       14 given names of the job as JSON, '' for none  15 '1' if it may fill the workspace  then what facts.lua needs
-- Reply {'accepted', bytes}, by which it is counted, or a refusal of admission.lua
--- @include now.lua
--- @include elsewhere.lua
--- @include still.lua
--- @include tenant-jobs.lua
--- @include ceilings.lua
--- @include usage.lua
--- @include result-bytes.lua
--- @include workspaces.lua
--- @include facts.lua
--- @include queue-length.lua
--- @include nearly-full.lua
--- @include admission.lua
local key, tenant, session, kind, attempt, jobId = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[10]
refuseWhileMoving(key)
local facts = fleetFacts(jobId, string.match(key, '^[^.]+'), tenant)
local wanted = {
  key = key, jobId = jobId, attempt = attempt, pool = ARGV[6], tenant = tenant, bytes = tonumber(ARGV[12]),
  mostPerSandbox = ARGV[7], mostInFleet = ARGV[8], ceilings = ARGV[11], sandboxes = KEYS[3], asks = ARGV[13], isNew = true,
  fills = ARGV[15] == '1',
}
local no = refusal(KEYS[1], redis.call('HGET', KEYS[2], 'pool'), 4, wanted, facts)
if no then
  return no
end
local now = redisNow()
if redis.call('HEXISTS', KEYS[1], 'key') == 0 then
  redis.call('HSET', KEYS[1], 'key', key, 'tenant', tenant, 'session', session, 'kind', kind, 'at', now, 'asks', ARGV[13],
    'delayed', ARGV[12])
  countDelayed(key, tenant, jobId, now + tonumber(ARGV[9]), ARGV[12])
  if ARGV[14] ~= '' then
    redis.call('HSET', KEYS[1], 'names', ARGV[14])
  end
  redis.call('PEXPIRE', KEYS[1], ARGV[9])
  elsewhere('SET', string.format('@sandboxOf', jobId), key, 'PX', ARGV[9])
end
redis.call('ZADD', KEYS[3], now, key)
post(key)
return {'accepted', tonumber(redis.call('HGET', KEYS[1], 'delayed') or ARGV[12])}
