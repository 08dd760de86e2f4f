#!lua flags=allow-oom
-- One page of the pending sandboxes that have no holder and are not paused. The sweep walks page by page, so that sandboxes which
-- no worker can take hide no others. Driven by indexes, never by scanning keys.
-- KEYS  1 pending (sorted set, by when it was marked)  2 leases (sorted set, by deadline)  3 paused (set)
-- ARGV  1 marked after this time in ms  2 how many pending sandboxes to look at  3 marked at least this many ms ago
-- Reply {next, key, …}   the longest pending first; next: where the next page begins, '' after the last one
--- @include now.lua
local now = redisNow()
local after = '(' .. ARGV[1]
local page = redis.call('ZRANGEBYSCORE', KEYS[1], after, now - tonumber(ARGV[3]), 'WITHSCORES', 'LIMIT', 0, ARGV[2])
local next = ''
if #page == 2 * tonumber(ARGV[2]) then
  next = page[#page]
end
local found = {next}
if #page == 0 then
  return found
end
-- Read again up to the last score: a page includes all sandboxes that were marked in its last millisecond.
local keys = redis.call('ZRANGEBYSCORE', KEYS[1], after, page[#page])
local deadlines = redis.call('ZMSCORE', KEYS[2], unpack(keys))
local anyPaused = redis.call('SCARD', KEYS[3]) > 0
for index, key in ipairs(keys) do
  if not deadlines[index] or tonumber(deadlines[index]) <= now then
    local tenant = string.match(key, '^[^.]+')
    if not anyPaused or redis.call('SISMEMBER', KEYS[3], tenant) == 0 then
      found[#found + 1] = key
    end
  end
end
return found
