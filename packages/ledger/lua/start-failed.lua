#!lua flags=allow-oom
-- Notes that the holder could not start a sandbox, and reads which other workers failed lately.
-- KEYS  1 lease (hash)
-- ARGV  1 epoch  2 worker  3 ms for which a failure counts
-- Reply {'failed', worker, …}   this one included
--       {'fenced', epoch}       another process has taken the sandbox since: nothing was changed
--- @include now.lua
local held = redis.call('HMGET', KEYS[1], 'epoch', 'failed')
if held[1] ~= ARGV[1] then
  return {'fenced', tonumber(held[1] or '0')}
end
local now = redisNow()
local known = cjson.decode(held[2] or '{}')
known[ARGV[2]] = now
local reply = {'failed'}
for worker, at in pairs(known) do
  if at > now - tonumber(ARGV[3]) then
    reply[#reply + 1] = worker
  else
    known[worker] = nil
  end
end
redis.call('HSET', KEYS[1], 'failed', cjson.encode(known))
return reply
