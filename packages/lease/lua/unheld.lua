-- Pending sandboxes that nobody holds: what the sweep offers again. Driven by two indexes, never by scanning keys.
-- KEYS  1 pending (sorted set, by when it was marked)  2 leases (sorted set, by deadline)
-- ARGV  1 how many at most  2 marked at least this many ms ago
-- Reply {key, …}   the longest pending first
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local found = {}
local from = 0
local wanted = tonumber(ARGV[1])
while #found < wanted do
  local some = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[2]), 'LIMIT', from, 500)
  if #some == 0 then
    break
  end
  local deadlines = redis.call('ZMSCORE', KEYS[2], unpack(some))
  for index, key in ipairs(some) do
    if #found < wanted and (not deadlines[index] or tonumber(deadlines[index]) <= now) then
      found[#found + 1] = key
    end
  end
  from = from + #some
end
return found
