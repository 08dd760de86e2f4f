#!lua flags=allow-oom
-- Drops an artifact. With the last one of a content its bytes go: at once from Redis, later by the sweep from a directory.
-- KEYS  1 artifact (hash)  2 expiry (sorted set)  3 usage (hash)  4 blob (hash)  5 bytes (string)  6 garbage (sorted set)
--       7 persisted (hash)  8 conversations (set)
-- ARGV  1 id  2 place  3 '1': only if it has expired  4 lease (hash), '' if the holder is not compared
--       5 epoch and 6 instance, compared with the lease
-- Reply {'dropped', file}    dropped; the file without a reference now, or ''
--       {'kept'}             it is not there, or has not expired
--       {'fenced', epoch}    another process holds the sandbox
--- @include now.lua
--- @include fenced.lua
--- @include elsewhere.lua
local now = redisNow()
-- On a cluster the lease is in another slot: the caller compared it just before.
local heldBy = not isCluster and ARGV[4] ~= '' and fencedBy(ARGV[4], ARGV[5], ARGV[6])
if heldBy then
  return {'fenced', heldBy}
end
local known = redis.call('HMGET', KEYS[1], 'tenant', 'size', 'place', 'path', 'expires')
if not known[1] or known[3] ~= ARGV[2] or (ARGV[3] == '1' and tonumber(known[5]) > now) then
  return {'kept'}
end
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('HINCRBY', KEYS[3], known[1], -tonumber(known[2]))
if redis.call('HINCRBY', KEYS[3], known[1] .. '/count', -1) <= 0 then
  redis.call('HDEL', KEYS[3], known[1], known[1] .. '/count')
end
if redis.call('HGET', KEYS[7], known[4]) == ARGV[1] then
  redis.call('HDEL', KEYS[7], known[4])
  if redis.call('EXISTS', KEYS[7]) == 0 then
    redis.call('SREM', KEYS[8], KEYS[7])
  end
end
if redis.call('HINCRBY', KEYS[4], 'refs', -1) > 0 then
  return {'dropped', ''}
end
local file = redis.call('HGET', KEYS[4], 'file') or ''
redis.call('DEL', KEYS[4], KEYS[5])
if file ~= '' then
  redis.call('ZADD', KEYS[6], now, file)
end
return {'dropped', file}
