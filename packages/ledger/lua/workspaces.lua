-- How many bytes the workspaces of one tenant have. One hash, in the slot of its sandboxes: field: sandbox key; value: bytes, as its
-- holder measured them last. The field '*', which no sandbox is called, is their sum: admission reads it alone.
local function workspacesKey(sandboxKey)
  return string.format('@workspacesOf', string.match(sandboxKey, '^[^.]+'))
end

-- Gives the key and the bytes noted before; nothing while a cluster moves the slot and the hash is on the other node: a renewal goes on
-- without it.
local function workspaceBefore(sandboxKey)
  local key = workspacesKey(sandboxKey)
  local before = redis.pcall('HGET', key, sandboxKey)
  if type(before) == 'table' then
    return nil
  end
  return key, before
end

-- `bytes`: '' if nothing was measured yet. What was measured before the workspace was removed may come after that.
local function noteWorkspace(lease, sandboxKey, bytes)
  if bytes == '' then
    return
  end
  local key, before = workspaceBefore(sandboxKey)
  if not key or bytes == before or redis.call('HEXISTS', lease, 'destroyed') == 1 then
    return
  end
  redis.call('HSET', key, sandboxKey, bytes)
  redis.call('HINCRBY', key, '*', string.format('%.0f', tonumber(bytes) - tonumber(before or '0')))
end

local function forgetWorkspace(sandboxKey)
  local key, before = workspaceBefore(sandboxKey)
  if not before then
    return
  end
  redis.call('HDEL', key, sandboxKey)
  if redis.call('HINCRBY', key, '*', '-' .. before) <= 0 then
    redis.call('HDEL', key, '*')
  end
end
