-- How many bytes the workspaces of one tenant have. One hash, in the slot of its sandboxes: field: sandbox key, or a directory that several
-- of its sandboxes share ('/tools', '/agent.NAME': no sandbox is called so); value: bytes, as a holder measured them last. The field '*'
-- is their sum: admission reads it alone.
local function workspacesKey(sandboxKey)
  return string.format('@workspacesOf', string.match(sandboxKey, '^[^.]+'))
end

-- Gives the key and the bytes noted before; nothing while a cluster moves the slot and the hash is on the other node, so that a renewal
-- does not fail.
local function workspaceBefore(sandboxKey, field)
  local key = workspacesKey(sandboxKey)
  local before = redis.pcall('HGET', key, field)
  if type(before) == 'table' then
    return nil
  end
  return key, before
end

local function noteBytes(sandboxKey, field, bytes)
  local key, before = workspaceBefore(sandboxKey, field)
  if not key or bytes == before then
    return
  end
  redis.call('HSET', key, field, bytes)
  redis.call('HINCRBY', key, '*', string.format('%.0f', tonumber(bytes) - tonumber(before or '0')))
end

-- `measured`: the bytes of the sandbox's own workspace ('-': not known), and ' FIELD=BYTES' for each shared directory that it may write;
-- '' if nothing was measured yet. A measurement may arrive after the workspace was removed: then only its shared directories count.
local function noteWorkspace(lease, sandboxKey, measured)
  local own, shared = string.match(measured, '^([%d-]*)(.*)$')
  for field, bytes in string.gmatch(shared, ' (/[^=]+)=(%d+)') do
    noteBytes(sandboxKey, field, bytes)
  end
  if tonumber(own) and redis.call('HEXISTS', lease, 'destroyed') == 0 then
    noteBytes(sandboxKey, sandboxKey, own)
  end
end

local function forgetWorkspace(sandboxKey)
  local key, before = workspaceBefore(sandboxKey, sandboxKey)
  if not before then
    return
  end
  redis.call('HDEL', key, sandboxKey)
  if redis.call('HINCRBY', key, '*', '-' .. before) <= 0 then
    redis.call('HDEL', key, '*')
  end
end
