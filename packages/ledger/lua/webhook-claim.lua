#!lua flags=allow-oom
-- Takes webhook calls that are due: a few of each owner, and owners in the order of how long they have waited. While an owner's
-- calls are being made, no gateway takes more of them until they are released or their gateway has died.
-- KEYS  1 owners with calls (sorted set by when their next is due)
-- ARGV  1 now, epoch ms  2 ms until a gateway that has not settled them is taken for dead  3 how many owners  4 how many calls of each
--       5 ms after which an owner whose calls are being made is looked at again
-- Reply a list of {owner, batch id, …}
local now, most = tonumber(ARGV[1]), tonumber(ARGV[3])
local taken = {}
for _, owner in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, 10 * most)) do
  if #taken >= most then
    break
  end
  local calls, hold = string.format('@webhooksOf', owner), string.format('@webhookHold', owner)
  local due = redis.call('ZRANGEBYSCORE', calls, '-inf', now, 'LIMIT', 0, ARGV[4])
  if redis.call('EXISTS', hold) == 1 then
    redis.call('ZADD', KEYS[1], 'XX', now + ARGV[5], owner)
  elseif #due > 0 then
    redis.call('SET', hold, '1', 'PX', ARGV[2])
    redis.call('ZADD', KEYS[1], 'XX', now + ARGV[2], owner)
    taken[#taken + 1] = {owner, unpack(due)}
  else
    local first = redis.call('ZRANGE', calls, 0, 0, 'WITHSCORES')
    if first[2] then
      redis.call('ZADD', KEYS[1], 'XX', first[2], owner)
    else
      redis.call('ZREM', KEYS[1], owner)
    end
  end
end
return taken
