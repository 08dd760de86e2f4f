#!lua
-- Adds an artifact: within its tenant's quota, with its bytes or a reference to the file that has them.
-- KEYS  1 artifact (hash)  2 expiry (sorted set)  3 usage (hash)  4 blob (hash)  5 bytes (string)  6 garbage (sorted set)
--       7 persisted (hash)  8 conversations (set)
-- ARGV  1 id  2 tenant  3 size  4 most bytes of the tenant  5 most artifacts of the tenant  6 ms it is kept  7 place
--       8 file, '' when the bytes are in Redis  9 bytes, '' when they are in a file  10 lease (hash), '' if the holder is not compared
--       11 path it is persisted as, '' when it is not  12 most paths persisted  13 id persisted there so far  14 size of that
--       15 epoch and 16 instance, compared with the lease  17… further fields of the artifact, name and value in turn
-- Reply {'added', expires, place, file}  added, or there before and kept for longer; the file is another's when the content is known
--       {'quota', bytes, count}    it would pass the tenant's quota
--       {'fenced', epoch}          another process holds the sandbox
--       {'swept'}                  the file may have been swept meanwhile
--       {'changed'}                something else is persisted at the path by now
--       {'too-many', count}        too many paths are persisted
--- @include now.lua
--- @include fenced.lua
--- @include elsewhere.lua
local now = redisNow()
local size, kept, file, path = tonumber(ARGV[3]), tonumber(ARGV[6]), ARGV[8], ARGV[11]
-- On a cluster the lease is in another slot: the caller compared it just before.
local heldBy = not isCluster and ARGV[10] ~= '' and fencedBy(ARGV[10], ARGV[15], ARGV[16])
if heldBy then
  return {'fenced', heldBy}
end
if path ~= '' then
  local there = redis.call('HGET', KEYS[7], path) or ''
  if there ~= ARGV[13] then
    return {'changed'}
  end
  local count = redis.call('HLEN', KEYS[7])
  if there == '' and count >= tonumber(ARGV[12]) then
    return {'too-many', count}
  end
end
local known = redis.call('HMGET', KEYS[1], 'expires', 'place', 'file')
local expires = now + kept
if known[1] then
  expires = math.max(expires, tonumber(known[1]))
else
  local used = redis.call('HMGET', KEYS[3], ARGV[2], ARGV[2] .. '/count')
  local bytes, count = tonumber(used[1] or '0'), tonumber(used[2] or '0')
  local replaced = ARGV[13] ~= '' and 1 or 0
  if bytes - tonumber(ARGV[14]) + size > tonumber(ARGV[4]) or count - replaced >= tonumber(ARGV[5]) then
    return {'quota', bytes, count}
  end
  if file ~= '' then
    local before = redis.call('HGET', KEYS[4], 'file')
    if before then
      file = before
    else
      -- Once a file is due it may be removed at any moment, and is never taken again.
      local due = redis.call('ZSCORE', KEYS[6], file)
      if not due or tonumber(due) <= now then
        return {'swept'}
      end
      redis.call('ZREM', KEYS[6], file)
      redis.call('HSET', KEYS[4], 'file', file)
    end
  end
  redis.call('HINCRBY', KEYS[4], 'refs', 1)
  redis.call('HINCRBY', KEYS[3], ARGV[2], size)
  redis.call('HINCRBY', KEYS[3], ARGV[2] .. '/count', 1)
  redis.call('HSET', KEYS[1], 'tenant', ARGV[2], 'size', size, 'place', ARGV[7], 'file', file, 'at', now, unpack(ARGV, 17))
  known = {false, ARGV[7], file}
end
redis.call('HSET', KEYS[1], 'expires', expires)
redis.call('ZADD', KEYS[2], expires, ARGV[1])
if known[2] == ARGV[7] and file == '' then
  redis.call('SET', KEYS[5], ARGV[9], 'PX', math.max(expires - now, redis.call('PTTL', KEYS[5])))
end
if path ~= '' then
  redis.call('HSET', KEYS[7], path, ARGV[1])
  redis.call('SADD', KEYS[8], KEYS[7])
end
return {'added', expires, known[2], known[3]}
