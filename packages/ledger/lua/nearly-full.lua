-- The high-water mark that memory.lua set. Needs now.lua. Gives nil, or {'redis-full', bytes used, bytes from which new jobs are refused}.
local function nearlyFull(settings)
  local mark = redis.call('HMGET', settings, 'fullUntil', 'usedBytes', 'fullFromBytes')
  if not mark[1] or tonumber(mark[1]) <= redisNow() then
    return nil
  end
  return {'redis-full', tonumber(mark[2]), tonumber(mark[3])}
end
