-- A script is aborted in the middle when it meets a key that the move of its hash slot has taken to another node. So none begins while
-- its slot moves: on either node Redis refuses a look at two keys that do not exist. Needs elsewhere.lua. Before the first write.
local function refuseWhileMoving(sandboxKey)
  if isCluster then
    local key = string.format('@outbox', string.match(sandboxKey, '^[^.]+'))
    redis.call('EXISTS', key .. ':a', key .. ':b')
  end
end
