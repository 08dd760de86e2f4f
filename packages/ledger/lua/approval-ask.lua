#!lua flags=allow-oom
-- A job needs an approval before it runs. Says how it was decided, or notes that it waits.
-- KEYS  1 approval (hash)  2 the owner's approvals that wait (sorted set)
-- ARGV  1 job id  2 what it would run, as JSON  3 ms it may wait  4 ms the decision is remembered
--       5 digest of what custom tools run in it, since their definitions may change; empty without any
-- Reply {'asked' | 'waiting', ms left}   it waits; asked: since now
--       {'approved'}  {'refused', reason}  {'expired'}
--- @include now.lua
local approval, waiting = KEYS[1], KEYS[2]
local jobId, what, expiresMs, keptMs = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local digest = ARGV[5]
local now = redisNow()
local known = redis.call('HMGET', approval, 'state', 'expiresAtMs', 'reason', 'digest')
local state, expiresAtMs = known[1], tonumber(known[2] or '0')
if (state == 'approved' or state == 'waiting') and (known[4] or '') ~= digest then
  state = nil
end
if state == 'approved' or state == 'expired' then
  return {state}
end
if state == 'refused' then
  return {state, known[3] or ''}
end
if state == 'waiting' then
  if now < expiresAtMs then
    return {'waiting', expiresAtMs - now}
  end
  redis.call('HSET', approval, 'state', 'expired')
  redis.call('ZREM', waiting, jobId)
  redis.call('PEXPIRE', approval, keptMs)
  return {'expired'}
end
redis.call('HSET', approval, 'state', 'waiting', 'askedAtMs', now, 'expiresAtMs', now + expiresMs, 'what', what,
  'digest', digest)
redis.call('PEXPIRE', approval, expiresMs + keptMs)
redis.call('ZADD', waiting, now + expiresMs, jobId)
return {'asked', expiresMs}
