#!lua flags=allow-oom
-- Makes the consumer group if it is not there, and counts what was trimmed from the stream before the group had read it.
-- The count is returned once: the script corrects the group's own count of what it read.
-- KEYS  1 results (stream)
-- ARGV  1 group  2 '0' or '$': where a new group begins
-- Reply n    entries that the group will never see, and that no earlier call returned
--       -1   this Redis (before 7) does not count
local function fields(reply)
  local named = {}
  for index = 1, #reply, 2 do
    named[reply[index]] = reply[index + 1]
  end
  return named
end

local function groupOf()
  if redis.call('EXISTS', KEYS[1]) == 0 then
    return nil
  end
  for _, reply in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
    local group = fields(reply)
    if group['name'] == ARGV[1] then
      return group
    end
  end
  return nil
end

local group = groupOf()
if not group then
  redis.call('XGROUP', 'CREATE', KEYS[1], ARGV[1], ARGV[2], 'MKSTREAM')
end
local stream = fields(redis.call('XINFO', 'STREAM', KEYS[1]))
local added = stream['entries-added']
if not added then
  return -1
end
local trimmed = added - stream['length']
if not group or type(group['entries-read']) ~= 'number' then
  -- A group that begins now has missed nothing yet.
  local at = group and group['last-delivered-id'] or (ARGV[2] == '$' and stream['last-generated-id'] or '0-0')
  local read = (at == stream['last-generated-id']) and added or trimmed
  redis.call('XGROUP', 'SETID', KEYS[1], ARGV[1], at, 'ENTRIESREAD', read)
  return 0
end
local lost = trimmed - group['entries-read']
if lost <= 0 then
  return 0
end
redis.call('XGROUP', 'SETID', KEYS[1], ARGV[1], group['last-delivered-id'], 'ENTRIESREAD', trimmed)
return lost
