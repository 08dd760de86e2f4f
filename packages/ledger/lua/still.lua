-- Redis aborts a script midway when it uses a key that slot migration has moved to another node. So no script begins while its slot
-- moves: on either node Redis refuses a command on two keys that do not exist. Call it before the first write. Needs elsewhere.lua.
local function refuseWhileMoving(sandboxKey)
  if isCluster then
    local key = string.format('@outbox', string.match(sandboxKey, '^[^.]+'))
    redis.call('EXISTS', key .. ':a', key .. ':b')
  end
end
