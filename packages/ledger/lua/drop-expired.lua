-- Drops entries of attempts that ended so long ago that the jobs' events have expired. A hundred of each list are kept at most.
-- `lists`: completed and failed (sorted sets by end)   `prefix`: what the keys of entries begin with   `before`: ended by then
local function dropExpired(lists, prefix, before)
  for _, list in ipairs(lists) do
    for _, queuedId in ipairs(redis.call('ZRANGEBYSCORE', list, '-inf', before, 'LIMIT', 0, 100)) do
      redis.call('ZREM', list, queuedId)
      redis.call('UNLINK', prefix .. queuedId)
    end
  end
end
