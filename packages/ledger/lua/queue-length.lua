-- How many jobs a sandbox's queue has that are not finished. `keys`, from the one at `first` on: wait, active, prioritized (a sorted set)
-- and paused.
local function queueLength(keys, first)
  local length = 0
  for index = first, #keys do
    length = length + redis.call(index == first + 2 and 'ZCARD' or 'LLEN', keys[index])
  end
  return length
end
