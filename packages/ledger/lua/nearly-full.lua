-- The high-water mark that memory.lua set. Needs now.lua. `full`: {until, used, from} of the fleet's settings
-- Gives nil, or {'redis-full', bytes used, bytes from which new jobs are refused}.
local function nearlyFull(full)
  if not full[1] or tonumber(full[1]) <= redisNow() then
    return nil
  end
  return {'redis-full', tonumber(full[2]), tonumber(full[3])}
end
