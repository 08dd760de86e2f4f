#!lua flags=allow-oom
-- Takes the next jobs from a sandbox's queue, for its holder. Fenced, so that a stale worker takes nothing.
-- KEYS  1 lease (hash)  2 wait (list)  3 prioritized (sorted set)  4 active (list, the last taken first)
-- ARGV  1 epoch  2 instance  3 how many  4 what the keys of entries begin with
-- Reply {'fenced', epoch}
--       {'taken', id, data, timestamp, id, data, timestamp, …}
--- @include now.lua
--- @include fenced.lua
local epoch = fencedBy(KEYS[1], ARGV[1], ARGV[2])
if epoch then
  return {'fenced', epoch}
end
local now = redisNow()
local reply = {'taken'}
for _ = 1, tonumber(ARGV[3]) do
  local id = redis.call('LMOVE', KEYS[2], KEYS[4], 'RIGHT', 'LEFT')
  if not id then
    local first = redis.call('ZPOPMIN', KEYS[3])
    id = first[1]
    if not id then
      break
    end
    redis.call('LPUSH', KEYS[4], id)
  end
  local entry = redis.call('HMGET', ARGV[4] .. id, 'data', 'timestamp')
  if entry[1] then
    redis.call('HSET', ARGV[4] .. id, 'processedOn', now)
    reply[#reply + 1] = id
    reply[#reply + 1] = entry[1]
    reply[#reply + 1] = entry[2] or '0'
  else
    -- An id without its entry, as after an eviction: nothing is known of it, and it would block the queue for ever.
    redis.call('LREM', KEYS[4], 1, id)
  end
end
return reply
