-- Pending sandboxes that nobody holds and nobody paused: what the sweep offers again. Driven by indexes, never by scanning keys.
-- KEYS  1 pending (sorted set, by when it was marked)  2 leases (sorted set, by deadline)  3 paused (set)
-- ARGV  1 how many at most  2 marked at least this many ms ago
-- Reply {key, …}   the longest pending first
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local found = {}
local from = 0
local wanted = tonumber(ARGV[1])
local anyPaused = redis.call('SCARD', KEYS[3]) > 0
while #found < wanted do
  local some = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[2]), 'LIMIT', from, 500)
  if #some == 0 then
    break
  end
  local deadlines = redis.call('ZMSCORE', KEYS[2], unpack(some))
  for index, key in ipairs(some) do
    if #found < wanted and (not deadlines[index] or tonumber(deadlines[index]) <= now) then
      local tenant = string.match(key, '^[^.]+')
      if not anyPaused or redis.call('SISMEMBER', KEYS[3], tenant) == 0 then
        found[#found + 1] = key
      end
    end
  end
  from = from + #some
end
return found
