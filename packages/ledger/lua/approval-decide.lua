#!lua flags=allow-oom
-- Records an administrator's decision about a job that waits for an approval. The first decision counts.
-- KEYS  1 approval (hash)  2 the owner's approvals that wait (sorted set)
-- ARGV  1 job id  2 'approved' or 'refused'  3 who  4 reason  5 ms the decision is remembered
--       6 digest of what the administrator saw; '' only with 'refused', which needs none
-- Reply 'decided'
--       'unknown'   no approval was asked for
--       'changed'   it would run something else than what was seen
--       'approved' | 'refused' | 'expired'   it was decided before
--- @include now.lua
local approval, waiting = KEYS[1], KEYS[2]
local jobId, decision, by, reason, keptMs, digest = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local known = redis.call('HMGET', approval, 'state', 'expiresAtMs', 'digest')
if not known[1] then
  return 'unknown'
end
if known[3] ~= digest and not (decision == 'refused' and digest == '') then
  return 'changed'
end
if known[1] ~= 'waiting' then
  return known[1]
end
redis.call('ZREM', waiting, jobId)
local now = redisNow()
if now >= tonumber(known[2]) then
  redis.call('HSET', approval, 'state', 'expired')
  return 'expired'
end
redis.call('HSET', approval, 'state', decision, 'by', by, 'reason', reason, 'decidedAtMs', now)
redis.call('PEXPIRE', approval, keptMs)
return 'decided'
