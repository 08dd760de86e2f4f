-- How many jobs a sandbox's queue has that are not finished. `keys`: its lists and sorted sets, from the one at `first` on.
local function queueLength(keys, first)
  local length = 0
  for index = first, #keys do
    local kind = redis.call('TYPE', keys[index]).ok
    if kind == 'list' then
      length = length + redis.call('LLEN', keys[index])
    elseif kind == 'zset' then
      length = length + redis.call('ZCARD', keys[index])
    end
  end
  return length
end
