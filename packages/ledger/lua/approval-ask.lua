#!lua flags=allow-oom
-- For a job that needs an approval before it runs: returns the decision, or records that the job waits for one.
-- KEYS  1 approval (hash)  2 the owner's approvals that wait (sorted set)  3 job (hash)
-- ARGV  1 job id  2 what an administrator sees of it, as JSON  3 all that it would run, as text  4 ms it may wait
--       5 ms the decision is remembered  6 digest of all that decides what runs: a decision about anything else does not count
-- Reply {'asked' | 'waiting', ms left}   it waits; asked: since now
--       {'approved'}  {'refused', reason}  {'expired'}: also for a job that has ended meanwhile
--- @include now.lua
local approval, waiting, job = KEYS[1], KEYS[2], KEYS[3]
local jobId, what, whole = ARGV[1], ARGV[2], ARGV[3]
local expiresMs, keptMs, digest = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local now = redisNow()
if redis.call('HEXISTS', job, 'outcome') == 1 then
  return {'expired'}
end
local known = redis.call('HMGET', approval, 'state', 'expiresAtMs', 'reason', 'digest')
local state, expiresAtMs = known[1], tonumber(known[2] or '0')
if known[4] ~= digest then
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
redis.call('UNLINK', approval)
redis.call('HSET', approval, 'state', 'waiting', 'askedAtMs', now, 'expiresAtMs', now + expiresMs, 'what', what, 'whole', whole,
  'digest', digest)
redis.call('PEXPIRE', approval, expiresMs + keptMs)
redis.call('ZADD', waiting, now + expiresMs, jobId)
return {'asked', expiresMs}
