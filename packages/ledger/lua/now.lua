-- Redis' clock in milliseconds.
local function redisNow()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
