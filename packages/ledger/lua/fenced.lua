-- The fencing check: whether the caller's epoch and process still hold the sandbox. Gives nil if they do, or the current epoch.
local function fencedBy(lease, epoch, instance)
  local held = redis.call('HMGET', lease, 'worker', 'epoch', 'instance')
  if held[2] == epoch and held[3] == instance and held[1] and held[1] ~= '' then
    return nil
  end
  return tonumber(held[2] or '0')
end
