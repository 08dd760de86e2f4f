#!lua
-- Stages a request beside the queue. Does not replace the request of an accepted job: only the first job of an id counts.
-- KEYS  1 staged (string)
-- ARGV  1 request  2 ms until it is forgotten if no job is accepted for it  3 job id  4 sandbox key  5 the job's tenant
--       6 default ceilings as JSON  7 '1': its job was accepted, and its bytes are counted  then what facts.lua needs
-- Reply {'put'}
--       {'known'}   there is an accepted job's
--       or the answer of nearly-full.lua, or that of ceilings.lua
--- @include now.lua
--- @include elsewhere.lua
--- @include tenant-jobs.lua
--- @include ceilings.lua
--- @include facts.lua
--- @include nearly-full.lua
local request, keptMs, jobId, key, tenant = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
if redis.call('PTTL', KEYS[1]) == -1 then
  return {'known'}
end
local facts = fleetFacts(jobId, string.match(key, '^[^.]+'), tenant)
local full = nearlyFull(facts.full)
if full then
  return full
end
local now, staged = redisNow(), ofTenant('@stagedOf', key, tenant)
local before = redis.call('STRLEN', KEYS[1])
if before > 0 then
  redis.call('ZREM', staged, jobId .. ' ' .. before)
end
if ARGV[7] ~= '1' then
  local bytes = stagedBytes(key, tenant, now, jobId) + tonumber(redis.call('GET', waitingBytesKey(key, tenant)) or '0')
  full = bytes > 0 and pastCeiling(ceilingsIn(ARGV[6], facts.ceilings), 'waitingBytes', bytes, #request)
  if full then
    redis.call('UNLINK', KEYS[1])
    return full
  end
  redis.call('ZADD', staged, now + tonumber(keptMs), jobId .. ' ' .. #request)
  redis.call('PEXPIRE', staged, 2 * tonumber(keptMs))
end
redis.call('SET', KEYS[1], request, 'PX', keptMs)
return {'put'}
